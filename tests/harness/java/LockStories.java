import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.Phaser;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/**
 * One story of threads that wait for each other, told at the line "go", or before READY with a second
 * argument "now": monitors (a deadlock of two), mixed (a deadlock through two monitors and a
 * ReentrantLock), timed (a circle of which one has a time limit), hog (one holds a monitor for 40 of 41
 * ms, three others want it), chain (three, each of which holds what the next one wants),
 * held (one waits for the ReentrantLock of another, who waits for a latch; two wait for a phaser), pool (workers
 * that wait for work), virtual (a thousand virtual threads), asleep (three hold a lock for 250 of 280 ms while they
 * sleep or read from a socket, and another wants it), long (four waits of a minute, one of each kind, and one for the
 * monitor of a thread that waits itself).
 * Ends at "end".
 */
public class LockStories {
    static class Left {
    }

    static class Right {
    }

    static class Hogged {
        long sum;
    }

    static final Object left = new Left(), right = new Right();
    static final ReentrantLock middle = new ReentrantLock();
    static final Hogged hogged = new Hogged();

    interface Step {
        void run() throws Exception;
    }

    static void start(String name, Step body) {
        Thread t = new Thread(() -> {
            try {
                body.run();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }, name);
        t.setDaemon(true);
        t.start();
    }

    static void meet(CountDownLatch all) throws InterruptedException {
        all.countDown();
        all.await();
    }

    static void monitors() {
        CountDownLatch both = new CountDownLatch(2);
        start("story-left", () -> {
            synchronized (left) {
                meet(both);
                synchronized (right) {
                    System.out.println("never");
                }
            }
        });
        start("story-right", () -> {
            synchronized (right) {
                meet(both);
                synchronized (left) {
                    System.out.println("never");
                }
            }
        });
    }

    static void mixed() {
        CountDownLatch all = new CountDownLatch(3);
        start("story-left", () -> {
            synchronized (left) {
                meet(all);
                middle.lock();
                System.out.println("never");
            }
        });
        start("story-middle", () -> {
            middle.lock();
            meet(all);
            synchronized (right) {
                System.out.println("never");
            }
        });
        start("story-right", () -> {
            synchronized (right) {
                meet(all);
                synchronized (left) {
                    System.out.println("never");
                }
            }
        });
    }

    static void timed() {
        CountDownLatch both = new CountDownLatch(2);
        start("story-left", () -> {
            synchronized (left) {
                meet(both);
                if (middle.tryLock(1, TimeUnit.HOURS)) System.out.println("never");
            }
        });
        start("story-middle", () -> {
            middle.lock();
            meet(both);
            synchronized (left) {
                System.out.println("never");
            }
        });
    }

    static void hog() {
        start("story-hog", () -> {
            for (;;) {
                synchronized (hogged) {
                    Thread.sleep(40);
                    hogged.sum++;
                }
                Thread.sleep(1);
            }
        });
        for (int i = 1; i <= 3; i++) {
            start("story-starved-" + i, () -> {
                for (;;) {
                    synchronized (hogged) {
                        hogged.sum++;
                    }
                    Thread.sleep(1);
                }
            });
        }
    }

    static void chain() {
        CountDownLatch held = new CountDownLatch(2);
        Semaphore never = new Semaphore(0);
        start("story-root", () -> {
            synchronized (left) {
                meet(held);
                never.acquire();
            }
        });
        start("story-second", () -> {
            synchronized (right) {
                meet(held);
                synchronized (left) {
                    System.out.println("never");
                }
            }
        });
        start("story-third", () -> {
            held.await();
            synchronized (right) {
                System.out.println("never");
            }
        });
    }

    static final CountDownLatch release = new CountDownLatch(1);
    static boolean isHeld;

    /** If "go" comes a second time, the holder releases the lock. */
    static void held() {
        if (isHeld) {
            release.countDown();
            return;
        }
        isHeld = true;
        Phaser phaser = new Phaser(3);
        for (int i = 0; i < 2; i++) start("story-phase-" + i, phaser::arriveAndAwaitAdvance);
        start("story-holder", () -> {
            middle.lock();
            release.await();
            middle.unlock();
        });
        start("story-waiter", () -> {
            Thread.sleep(100);
            middle.lock();
            middle.unlock();
            release.await();
            Thread.sleep(Long.MAX_VALUE);
        });
    }

    /** A timer every 20 ms, and four workers without work. */
    static void pool() {
        ScheduledExecutorService pool = Executors.newScheduledThreadPool(4, r -> {
            Thread t = new Thread(r, "story-pool");
            t.setDaemon(true);
            return t;
        });
        pool.scheduleAtFixedRate(() -> hogged.sum++, 20, 20, TimeUnit.MILLISECONDS);
    }

    /** A thousand virtual threads that wait for one latch; by reflection, so that this compiles
     * for JDK 8. */
    static void virtual() throws Exception {
        CountDownLatch never = new CountDownLatch(1);
        Runnable body = () -> {
            try {
                never.await();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        };
        for (int i = 0; i < 1000; i++) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, body);
    }

    static final long HELD_MS = 250;

    static class Asleep {
    }

    static class Reading {
    }

    static void sleepInside(Object lock) throws Exception {
        synchronized (lock) {
            Thread.sleep(HELD_MS);
        }
    }

    static void sleepLocked(ReentrantLock lock) throws Exception {
        lock.lock();
        try {
            Thread.sleep(HELD_MS);
        } finally {
            lock.unlock();
        }
    }

    static void readInside(Object lock, Socket socket) throws Exception {
        synchronized (lock) {
            socket.getOutputStream().write(1);
            socket.getInputStream().read();
        }
    }

    /** Answers each byte after a while. */
    static void answer(ServerSocket server) throws Exception {
        try (Socket socket = server.accept()) {
            for (int b; (b = socket.getInputStream().read()) >= 0;) {
                Thread.sleep(HELD_MS);
                socket.getOutputStream().write(b);
            }
        }
    }

    static void again(String name, long pauseMs, Step body) {
        start(name, () -> {
            for (;;) {
                body.run();
                Thread.sleep(pauseMs);
            }
        });
    }

    static void asleep() throws Exception {
        Object sleeping = new Asleep(), reading = new Reading();
        ReentrantLock locked = new ReentrantLock();
        ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        start("story-server", () -> answer(server));
        Socket socket = new Socket(server.getInetAddress(), server.getLocalPort());
        again("story-sleeper", 30, () -> sleepInside(sleeping));
        again("story-reader", 30, () -> readInside(reading, socket));
        again("story-locker", 30, () -> sleepLocked(locked));
        again("story-wants-asleep", 5, () -> {
            synchronized (sleeping) {
                hogged.sum++;
            }
        });
        again("story-wants-reading", 5, () -> {
            synchronized (reading) {
                hogged.sum++;
            }
        });
        again("story-wants-locked", 5, () -> {
            locked.lock();
            locked.unlock();
        });
    }

    static void within(int depth, Step body) throws Exception {
        if (depth > 0)
            within(depth - 1, body);
        else
            body.run();
    }

    static void long_() throws Exception {
        CountDownLatch held = new CountDownLatch(1);
        start("story-waits", () -> within(20, () -> {
            synchronized (left) {
                left.wait(60_000);
            }
        }));
        start("story-parks", () -> within(20, () -> new Semaphore(0).tryAcquire(60, TimeUnit.SECONDS)));
        start("story-holds", () -> within(20, () -> {
            synchronized (right) {
                held.countDown();
                new Semaphore(0).tryAcquire(60, TimeUnit.SECONDS);
            }
        }));
        held.await();
        start("story-enters", () -> within(20, () -> {
            synchronized (right) {
                hogged.sum++;
            }
        }));
    }

    static void tell(String story) throws Exception {
        if (story.equals("monitors")) monitors();
        else if (story.equals("mixed")) mixed();
        else if (story.equals("timed")) timed();
        else if (story.equals("hog")) hog();
        else if (story.equals("chain")) chain();
        else if (story.equals("held")) held();
        else if (story.equals("pool")) pool();
        else if (story.equals("virtual")) virtual();
        else if (story.equals("asleep")) asleep();
        else if (story.equals("long")) long_();
        else throw new IllegalArgumentException(story);
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        if (args.length > 1) {
            tell(args[0]);
            Thread.sleep(300);
        }
        System.out.println("READY");
        String line;
        while ((line = in.readLine()) != null && !line.equals("end")) {
            if (line.equals("go")) tell(args[0]);
        }
        System.out.println("END");
    }
}
