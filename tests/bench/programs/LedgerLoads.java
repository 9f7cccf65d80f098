import java.util.concurrent.locks.ReentrantLock;

/** LedgerLoads KIND THREADS: so many threads that compute, queue for locks, or sleep and read files, for ever. */
public class LedgerLoads {
    static final Object[] monitors = new Object[8];
    static final ReentrantLock[] locks = new ReentrantLock[8];
    static volatile long sink;

    static void compute(long ns) {
        for (long end = System.nanoTime() + ns; System.nanoTime() < end;)
            sink++;
    }

    static void step(String kind, int i) throws Exception {
        if (kind.equals("cpu")) {
            compute(3_000_000);
        } else if (kind.equals("locks") && i % 2 == 0) {
            synchronized (monitors[i / 2 % 8]) {
                compute(300_000);
                Thread.sleep(1);
            }
        } else if (kind.equals("locks")) {
            locks[i / 2 % 8].lock();
            try {
                compute(300_000);
                Thread.sleep(1);
            } finally {
                locks[i / 2 % 8].unlock();
            }
        } else {
            Thread.sleep(1 + i % 20);
            java.nio.file.Files.readAllBytes(java.nio.file.Paths.get("/proc/self/status"));
        }
    }

    public static void main(String[] args) {
        for (int i = 0; i < 8; i++) {
            monitors[i] = new Object();
            locks[i] = new ReentrantLock();
        }
        for (int i = 0; i < Integer.parseInt(args[1]); i++) {
            int number = i;
            new Thread(() -> {
                try {
                    for (;;)
                        step(args[0], number);
                } catch (Exception e) {
                    e.printStackTrace();
                }
            }, args[0] + "-" + i).start();
        }
        System.out.println("READY");
    }
}
