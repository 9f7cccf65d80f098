import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;

/**
 * Threads that do what their names say: "runnable", "blocked", "waiting", "parked", "timed", one that is
 * renamed at the first line on stdin, one that ends at it, and so many that only wait (first argument).
 * Second argument: so many virtual threads on a latch, half as many of an executor, asleep. Ends with stdin.
 */
public class ThreadsKnown {
    static final String LONG = "-thread-with-a-name-that-the-kernel-would-cut-\u00e9\u4e2d";
    static final Object held = new Object(), never = new Object();

    interface Body {
        void run() throws Exception;
    }

    static Runnable quiet(Body body) {
        return () -> {
            try {
                body.run();
            } catch (Exception e) {
                // it was asked to end
            }
        };
    }

    static Thread start(String name, Body body) {
        Thread t = new Thread(null, quiet(body), name + LONG, 128 << 10);
        t.setDaemon(true);
        t.start();
        return t;
    }

    static void hold() throws Exception {
        synchronized (held) {
            Thread.sleep(1_000_000);
        }
    }

    /** By reflection, so that this compiles for JDK 8. */
    static void virtual(int n) throws Exception {
        CountDownLatch latch = new CountDownLatch(1);
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        Class<?> type = Class.forName("java.lang.Thread$Builder");
        for (int i = 0; i < n; i++) type.getMethod("start", Runnable.class).invoke(builder, quiet(latch::await));
        Executor executor = (Executor) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        for (int i = 0; i < n / 2; i++) executor.execute(quiet(() -> Thread.sleep(1_000_000)));
    }

    public static void main(String[] args) throws Exception {
        CountDownLatch end = new CountDownLatch(1);
        start("holder", ThreadsKnown::hold);
        Thread.sleep(100);
        start("runnable", () -> {
            for (long i = 0; i >= 0; i++) Thread.yield();
        });
        start("blocked", () -> {
            synchronized (held) {
                held.notify();
            }
        });
        start("waiting", () -> {
            synchronized (never) {
                never.wait();
            }
        });
        start("parked", LockSupport::park);
        start("timed", () -> Thread.sleep(1_000_000));
        start("ending", end::await);
        Thread renamed = start("before", LockSupport::park);
        for (int i = 0; i < Integer.parseInt(args[0]); i++) start("many-" + i, LockSupport::park);
        if (args.length > 1) virtual(Integer.parseInt(args[1]));
        Thread.sleep(500);
        System.out.println("READY");
        System.in.read();
        renamed.setName("after" + LONG);
        end.countDown();
        System.out.println("CHANGED");
        while (System.in.read() >= 0);
        System.exit(0);
    }
}
