import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketException;
import java.util.concurrent.atomic.AtomicLong;
import javax.net.ssl.HandshakeCompletedListener;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSession;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.SSLSocketFactory;

/** Makes TLS sockets that count how long their handshakes take, and are else those of the factory within. */
final class TimedSockets extends SSLSocketFactory {
    /** How long all handshakes took, in nanoseconds, and how many they were. */
    static final AtomicLong shaking = new AtomicLong(), handshakes = new AtomicLong();

    private final SSLSocketFactory within;

    TimedSockets(SSLSocketFactory within) {
        this.within = within;
    }

    @Override public Socket createSocket(Socket plain, String host, int port, boolean autoClose) throws IOException {
        return new Timed((SSLSocket) within.createSocket(plain, host, port, autoClose));
    }

    // Clients connect a plain socket first and put TLS over it; none of these is called.
    @Override public Socket createSocket(String host, int port) { throw new UnsupportedOperationException(); }
    @Override public Socket createSocket(InetAddress host, int port) { throw new UnsupportedOperationException(); }
    @Override public Socket createSocket(String host, int port, InetAddress from, int own) { throw new UnsupportedOperationException(); }
    @Override public Socket createSocket(InetAddress host, int port, InetAddress from, int own) { throw new UnsupportedOperationException(); }
    @Override public String[] getDefaultCipherSuites() { return within.getDefaultCipherSuites(); }
    @Override public String[] getSupportedCipherSuites() { return within.getSupportedCipherSuites(); }

    private static final class Timed extends SSLSocket {
        private final SSLSocket to;

        Timed(SSLSocket to) {
            this.to = to;
        }

        @Override public void startHandshake() throws IOException {
            long began = System.nanoTime();
            to.startHandshake();
            shaking.addAndGet(System.nanoTime() - began);
            handshakes.incrementAndGet();
        }

        @Override public String[] getSupportedCipherSuites() { return to.getSupportedCipherSuites(); }
        @Override public String[] getEnabledCipherSuites() { return to.getEnabledCipherSuites(); }
        @Override public void setEnabledCipherSuites(String[] suites) { to.setEnabledCipherSuites(suites); }
        @Override public String[] getSupportedProtocols() { return to.getSupportedProtocols(); }
        @Override public String[] getEnabledProtocols() { return to.getEnabledProtocols(); }
        @Override public void setEnabledProtocols(String[] protocols) { to.setEnabledProtocols(protocols); }
        @Override public SSLSession getSession() { return to.getSession(); }
        @Override public SSLSession getHandshakeSession() { return to.getHandshakeSession(); }
        @Override public void addHandshakeCompletedListener(HandshakeCompletedListener one) { to.addHandshakeCompletedListener(one); }
        @Override public void removeHandshakeCompletedListener(HandshakeCompletedListener one) { to.removeHandshakeCompletedListener(one); }
        @Override public void setUseClientMode(boolean mode) { to.setUseClientMode(mode); }
        @Override public boolean getUseClientMode() { return to.getUseClientMode(); }
        @Override public void setNeedClientAuth(boolean need) { to.setNeedClientAuth(need); }
        @Override public boolean getNeedClientAuth() { return to.getNeedClientAuth(); }
        @Override public void setWantClientAuth(boolean want) { to.setWantClientAuth(want); }
        @Override public boolean getWantClientAuth() { return to.getWantClientAuth(); }
        @Override public void setEnableSessionCreation(boolean flag) { to.setEnableSessionCreation(flag); }
        @Override public boolean getEnableSessionCreation() { return to.getEnableSessionCreation(); }
        @Override public SSLParameters getSSLParameters() { return to.getSSLParameters(); }
        @Override public void setSSLParameters(SSLParameters parameters) { to.setSSLParameters(parameters); }
        @Override public InputStream getInputStream() throws IOException { return to.getInputStream(); }
        @Override public OutputStream getOutputStream() throws IOException { return to.getOutputStream(); }
        @Override public void connect(SocketAddress end, int limit) throws IOException { to.connect(end, limit); }
        @Override public InetAddress getInetAddress() { return to.getInetAddress(); }
        @Override public InetAddress getLocalAddress() { return to.getLocalAddress(); }
        @Override public SocketAddress getRemoteSocketAddress() { return to.getRemoteSocketAddress(); }
        @Override public SocketAddress getLocalSocketAddress() { return to.getLocalSocketAddress(); }
        @Override public int getPort() { return to.getPort(); }
        @Override public int getLocalPort() { return to.getLocalPort(); }
        @Override public void setTcpNoDelay(boolean on) throws SocketException { to.setTcpNoDelay(on); }
        @Override public void setSoTimeout(int limit) throws SocketException { to.setSoTimeout(limit); }
        @Override public int getSoTimeout() throws SocketException { return to.getSoTimeout(); }
        @Override public void setSoLinger(boolean on, int limit) throws SocketException { to.setSoLinger(on, limit); }
        @Override public void setKeepAlive(boolean on) throws SocketException { to.setKeepAlive(on); }
        @Override public boolean isConnected() { return to.isConnected(); }
        @Override public boolean isBound() { return to.isBound(); }
        @Override public boolean isClosed() { return to.isClosed(); }
        @Override public boolean isInputShutdown() { return to.isInputShutdown(); }
        @Override public boolean isOutputShutdown() { return to.isOutputShutdown(); }
        @Override public void shutdownInput() throws IOException { to.shutdownInput(); }
        @Override public void shutdownOutput() throws IOException { to.shutdownOutput(); }
        @Override public void close() throws IOException { to.close(); }
    }
}
