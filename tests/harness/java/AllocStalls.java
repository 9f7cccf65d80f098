import java.util.concurrent.ThreadLocalRandom;

/** Threads that allocate faster than a collector that runs beside them can follow, so that it makes them wait. */
public class AllocStalls {
    static final byte[][] kept = new byte[200][];

    static void allocate() {
        while (true)
            kept[ThreadLocalRandom.current().nextInt(kept.length)] = new byte[200_000];
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 6; i++)
            new Thread(AllocStalls::allocate, "allocates-" + i).start();
        System.out.println("READY");
        System.in.read();
        System.exit(0);
    }
}
