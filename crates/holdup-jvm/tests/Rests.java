/** Says that it runs, and rests: a thread with a name of its own sleeps. */
public final class Rests {
    public static void main(String[] words) throws Exception {
        Thread rests = new Thread(() -> {
            try {
                Thread.sleep(1_000_000);
            } catch (InterruptedException e) {
                return;
            }
        }, "it rests\n\u001b[31m");
        rests.setDaemon(true);
        rests.start();
        System.out.println("runs");
        System.in.read();
    }
}
