import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32;

/** Base of the page encodings. */
abstract class PageCodec {
    static final int[] DICTIONARY = Dictionaries.load("page", 1 << 17);
    static final PageCodec DEFAULT = new DeltaCodec();

    abstract byte[] encode(int[] page);

    abstract String name();

    static long checksum(byte[] raw) {
        CRC32 crc = new CRC32();
        crc.update(raw);
        return crc.getValue();
    }

    static PageCodec byName(String name) {
        return switch (name) {
            case "delta" -> new DeltaCodec();
            case "plain" -> new PlainCodec();
            default -> DEFAULT;
        };
    }
}

final class DeltaCodec extends PageCodec {
    private static final byte[] MAGIC = "DLT1".getBytes(StandardCharsets.US_ASCII);

    @Override
    byte[] encode(int[] page) {
        byte[] out = new byte[MAGIC.length + page.length];
        System.arraycopy(MAGIC, 0, out, 0, MAGIC.length);
        int last = 0;
        for (int i = 0; i < page.length; i++) {
            out[MAGIC.length + i] = (byte) (page[i] - last);
            last = page[i];
        }
        return out;
    }

    @Override
    String name() {
        return "delta";
    }
}

final class PlainCodec extends PageCodec {
    @Override
    byte[] encode(int[] page) {
        byte[] out = new byte[page.length * 4];
        for (int i = 0; i < page.length; i++) {
            out[i * 4] = (byte) page[i];
            out[i * 4 + 1] = (byte) (page[i] >> 8);
        }
        return out;
    }

    @Override
    String name() {
        return "plain";
    }
}

/** Static dictionaries that are computed at start. */
final class Dictionaries {
    private Dictionaries() {}

    static int[] load(String kind, int size) {
        int[] d = new int[size];
        long seed = kind.hashCode();
        for (int round = 0; round < 1500; round++) {
            for (int i = 0; i < size; i++) {
                seed = seed * 6364136223846793005L + 1442695040888963407L;
                d[i] ^= (int) (seed >>> 33);
            }
        }
        return d;
    }
}
