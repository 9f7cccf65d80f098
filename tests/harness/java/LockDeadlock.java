import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Threads that wait for each other for ever, two of them by monitors, three by ReentrantLocks, two by one
 * of each; and hungry ones: four that wait for a lock which one thread holds nearly all the time. They begin
 * at the first line on stdin; the program ends at the second.
 */
public class LockDeadlock {
    static class Fork {
    }

    static void hold(Object lock, LockKnown.Step inside) throws Exception {
        if (lock instanceof ReentrantLock) {
            ((ReentrantLock) lock).lock();
            inside.run();
            return;
        }
        synchronized (lock) {
            inside.run();
        }
    }

    /** Thread i holds lock i and wants lock i + 1. */
    static void cycle(String name, Object... locks) {
        CyclicBarrier all = new CyclicBarrier(locks.length);
        for (int i = 0; i < locks.length; i++) {
            int id = i;
            start(name + "-" + id, () -> hold(locks[id], () -> {
                all.await();
                hold(locks[(id + 1) % locks.length], () -> {
                    throw new IllegalStateException("no deadlock");
                });
            }));
        }
    }

    static void start(String name, LockKnown.Step body) {
        Thread t = LockKnown.thread(name, false, body);
        t.setDaemon(true);
        t.start();
    }

    static void hunger() {
        Object food = new Fork();
        for (int i = 0; i < 5; i++) {
            boolean glutton = i == 0;
            start(glutton ? "glutton" : "hungry-" + i, () -> {
                for (;;) {
                    synchronized (food) {
                        LockKnown.sleep(glutton ? 900 : 1);
                    }
                }
            });
        }
    }

    public static void main(String[] args) throws Exception {
        System.out.println("READY");
        System.in.read();
        cycle("philosopher", new Fork(), new Fork());
        cycle("locker", new ReentrantLock(), new ReentrantLock(), new ReentrantLock());
        cycle("mixed", new Fork(), new ReentrantLock());
        hunger();
        while (System.in.read() != 'q') continue;
        System.exit(0);
    }
}
