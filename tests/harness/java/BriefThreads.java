import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Threads that live for one wait: BriefThreads KIND PAIRS MILLIS [DOING [AT_ONCE [IDLE]]]. The owner of each pair
 * takes a lock of its own, holds it for MILLIS and ends; the waiter begins once it is held, waits for it and ends.
 * Their names are longer than the kernel keeps, and end in the pair's number. KIND: platform, virtual (21 and later,
 * named), unnamed (the same without names), executor (of an executor), old (owners that began before all
 * pairs and idle threads), shared (all pairs have one lock: one at a time), mixed (virtual owners, platform waiters). Locks are monitors and ReentrantLocks in turn; of virtual
 * waiters monitors alone, as others park without anybody being told. DOING is
 * what an owner does inside: sleep, run or read (from a socket); AT_ONCE is how many pairs there are at a time (4),
 * IDLE how many other virtual threads wait for nothing.
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
        if (!kind.equals("unnamed")) b = builder.getMethod("name", String.class).invoke(b, name);
        if (!kind.equals("executor")) return (Thread) builder.getMethod("start", Runnable.class).invoke(b, body);
        if (executor == null)
            executor = (Executor) Executors.class.getMethod("newThreadPerTaskExecutor", ThreadFactory.class)
                .invoke(null, (ThreadFactory) task -> made = unstarted(builder, task));
        next = b;
        executor.execute(body);
        return made;
    }

    /** The main thread's alone. */
    static Executor executor;
    static Object next;
    static Thread made;

    static Thread unstarted(Class<?> builder, Runnable task) {
        try {
            return (Thread) builder.getMethod("unstarted", Runnable.class).invoke(next, task);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** A thread of kind "old", which waits for its task. */
    static Thread[] old;
    static Runnable[] tasks;
    static Semaphore[] given;

    static void startOld(int n) throws Exception {
        old = new Thread[n];
        tasks = new Runnable[n];
        given = new Semaphore[n];
        for (int i = 0; i < n; i++) {
            int me = i;
            given[i] = new Semaphore(0);
            old[i] = start("virtual", "owner" + LONG + i, () -> {
                given[me].acquireUninterruptibly();
                tasks[me].run();
            });
        }
    }

    static Thread startOwner(String kind, int i, Runnable body) throws Exception {
        if (!kind.equals("old")) return start(kind.equals("mixed") ? "virtual" : kind, "owner" + LONG + i, body);
        tasks[i] = body;
        given[i].release();
        return old[i];
    }

    static volatile long sink;

    static void run(long ms) {
        for (long end = System.nanoTime() + ms * 1000000; System.nanoTime() < end;) sink++;
    }

    static final ArrayBlockingQueue<Socket> sockets = new ArrayBlockingQueue<>(64);

    static void answer(ServerSocket server, long ms) {
        try (Socket socket = server.accept()) {
            for (int b; (b = socket.getInputStream().read()) >= 0;) {
                sleep(ms);
                socket.getOutputStream().write(b);
            }
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    /** A socket for each thread that may read at the same time; its other end answers after a
     * while. */
    static void connect(int n, long ms) throws Exception {
        ServerSocket server = new ServerSocket(0, n, InetAddress.getLoopbackAddress());
        for (int i = 0; i < n; i++) {
            Thread t = new Thread(() -> answer(server, ms), "answers");
            t.setDaemon(true);
            t.start();
            sockets.add(new Socket(server.getInetAddress(), server.getLocalPort()));
        }
    }

    static void read(Socket socket) {
        try {
            socket.getOutputStream().write(1);
            socket.getInputStream().read();
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    static void hold(String doing, long ms, CountDownLatch held) {
        Socket socket = sockets.poll();
        held.countDown();
        if (doing.equals("run")) run(ms);
        else if (doing.equals("read")) read(socket);
        else sleep(ms);
        if (socket != null) sockets.add(socket);
    }

    static Thread[] pair(String kind, String doing, int i, long ms) throws Exception {
        CountDownLatch held = new CountDownLatch(1);
        Object monitor = kind.equals("shared") ? BriefThreads.class : new Object();
        boolean parks = kind.equals("platform") || kind.equals("mixed");
        ReentrantLock lock = i % 2 == 0 || !parks ? null : new ReentrantLock();
        Thread owner = startOwner(kind, i, () -> {
            if (lock == null) {
                synchronized (monitor) {
                    hold(doing, ms, held);
                }
            } else {
                lock.lock();
                hold(doing, ms, held);
                lock.unlock();
            }
        });
        held.await();
        Thread waiter = start(kind.equals("mixed") ? "platform" : kind, "waiter" + LONG + i, () -> {
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
        String doing = args.length > 3 ? args[3] : "sleep";
        int pairsAtOnce = args.length > 4 ? Integer.parseInt(args[4]) : 4;
        if (doing.equals("read")) connect(pairsAtOnce, ms);
        System.out.println("READY");
        System.in.read();
        if (args[0].equals("old")) startOld(pairs);
        for (int i = 0; args.length > 5 && i < Integer.parseInt(args[5]); i++)
            start("virtual", "idle" + LONG + i, () -> sleep(Long.MAX_VALUE));
        Semaphore atOnce = new Semaphore(pairsAtOnce);
        for (int i = 0; i < pairs; i++) {
            atOnce.acquire();
            Thread[] both = pair(args[0], doing, i, ms);
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
        atOnce.acquire(pairsAtOnce);
        System.out.println("END");
        while (System.in.read() >= 0);
    }
}
