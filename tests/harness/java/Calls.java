import java.io.*;
import java.lang.management.*;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;

/**
 * Threads whose time in the kernel is known: none, nearly all, and one that switches between both by its own CPU clock,
 * which is exact at any load. The utime and stime of /proc are not: the kernel estimates them from its ticks, and a
 * thread with 200 ms of CPU time on a busy machine has few ticks. And a thread whose stacks are checked.
 */
public class Calls {
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static final long PART_NS = 2_000_000;
    static volatile long sink;
    static volatile boolean ends;
    static final String[] NAMES = { "small", "large", "mixed", "spin" };
    static final long[] kernel = new long[4], all = new long[4];

    static void zeros(FileChannel from, ByteBuffer to) throws IOException {
        to.clear();
        sink += from.read(to); // into native memory: nothing is copied afterwards
    }
    static void turns(long n) { for (long i = 0; i < n; i++) sink += i * sink; }
    static long now() { return THREADS.getCurrentThreadCpuTime(); }

    static void small() throws IOException {
        byte[] b = new byte[4096];
        try (FileInputStream in = new FileInputStream("/dev/zero")) {
            while (!ends)
                for (int i = 0; i < 1000; i++) sink += in.read(b);
        }
    }
    static void calls(int self, boolean spins) throws IOException {
        ByteBuffer b = ByteBuffer.allocateDirect(1 << 20);
        try (FileChannel in = new FileInputStream("/dev/zero").getChannel()) {
            for (long begin = now(), middle, end = begin; !ends; begin = end) {
                do { zeros(in, b); } while ((middle = now()) - begin < PART_NS);
                end = middle;
                while (spins && (end = now()) - middle < PART_NS) turns(20000);
                synchronized (all) {
                    kernel[self] += middle - begin;
                    all[self] += end - begin;
                }
            }
        }
    }

    interface Work { void run() throws IOException; }
    static void start(int self, Work work) {
        Thread t = new Thread(() -> {
            try { work.run(); } catch (IOException e) { throw new UncheckedIOException(e); }
        }, NAMES[self]);
        t.setDaemon(true);
        t.start();
    }

    public static void main(String[] args) throws Exception {
        start(0, Calls::small);
        start(1, () -> calls(1, false));
        start(2, () -> calls(2, true));
        start(3, () -> { while (!ends) turns(1000); });
        System.out.println("READY");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String word; (word = in.readLine()) != null && word.equals("mark");)
            synchronized (all) {
                System.out.println("MARK large=" + all[1] + " large_kernel=" + kernel[1] + " mixed=" + all[2] +
                    " mixed_kernel=" + kernel[2]);
            }
        ends = true;
        System.out.println("END");
    }
}
