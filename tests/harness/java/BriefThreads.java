import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Threads that live for one wait: BriefThreads KIND PAIRS MILLIS. The owner of each pair takes a lock of its
 * own, holds it for MILLIS and ends; the waiter begins once it is held, waits for it and ends. Their names
 * are longer than the kernel keeps, and end in the pair's number. KIND: platform, virtual (21 and later:
 * named, and asleep inside), unnamed (the same without names). Locks are monitors and ReentrantLocks in
 * turn; of virtual threads monitors alone, as others park without anybody being told.
 *
 * READY on stdout, a line on stdin, PAIR i WAITER-ID OWNER-ID for each, END; it ends with stdin.
 */
public class BriefThreads {
    static final String LONG = "-of-a-thread-whose-name-no-kernel-would-keep-\u00e9\u4e2d-";

    static Thread start(String kind, String name, Runnable body) throws Exception {
        Thread t;
        if (kind.equals("platform")) {
            t = new Thread(body, name);
            t.start();
            return t;
        }
        Class<?> builder = Class.forName("java.lang.Thread$Builder");
        Object b = Thread.class.getMethod("ofVirtual").invoke(null);
        if (kind.equals("virtual")) b = builder.getMethod("name", String.class).invoke(b, name);
        return (Thread) builder.getMethod("start", Runnable.class).invoke(b, body);
    }

    static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    static Thread[] pair(String kind, int i, long ms) throws Exception {
        CountDownLatch held = new CountDownLatch(1);
        Object monitor = new Object();
        ReentrantLock lock = i % 2 == 0 || !kind.equals("platform") ? null : new ReentrantLock();
        Thread owner = start(kind, "owner" + LONG + i, () -> {
            if (lock == null) {
                synchronized (monitor) {
                    held.countDown();
                    sleep(ms);
                }
            } else {
                lock.lock();
                held.countDown();
                sleep(ms);
                lock.unlock();
            }
        });
        held.await();
        Thread waiter = start(kind, "waiter" + LONG + i, () -> {
            if (lock == null) {
                synchronized (monitor) {
                    return;
                }
            }
            lock.lock();
            lock.unlock();
        });
        return new Thread[] { waiter, owner };
    }

    public static void main(String[] args) throws Exception {
        int pairs = Integer.parseInt(args[1]);
        long ms = Long.parseLong(args[2]);
        System.out.println("READY");
        System.in.read();
        Semaphore atOnce = new Semaphore(4);
        for (int i = 0; i < pairs; i++) {
            atOnce.acquire();
            Thread[] both = pair(args[0], i, ms);
            System.out.println("PAIR " + i + " " + both[0].getId() + " " + both[1].getId());
            Thread end = new Thread(() -> {
                try {
                    both[0].join();
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
                atOnce.release();
            }, "joins");
            end.setDaemon(true);
            end.start();
        }
        atOnce.acquire(4);
        System.out.println("END");
        while (System.in.read() >= 0);
    }
}
