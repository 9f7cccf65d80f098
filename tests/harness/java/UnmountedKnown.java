import java.io.*;
import java.net.*;
import java.nio.ByteBuffer;
import java.nio.channels.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.locks.*;

/**
 * Virtual threads that wait without their carrier, one kind each, and tell each wait by their own clock: "T name begin
 * end" in CLOCK_MONOTONIC ns.
 *
 *   UnmountedKnown ROUNDS PAUSE_MS
 *
 * It says READY and begins with a line from outside; END follows the last wait.
 */
public class UnmountedKnown {
    static final StringBuffer told = new StringBuffer();
    static final CountDownLatch begin = new CountDownLatch(1);
    static final List<Thread> all = new ArrayList<>();
    static int rounds;
    static long pauseNs;

    interface Body { void run(int round) throws Exception; }

    static Thread startVirtual(String name, Runnable body) throws Exception {
        return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, (Runnable) () -> {
            if (!name.isEmpty())
                Thread.currentThread().setName(name);
            body.run();
        });
    }

    /* The threads begin one after another: the end of a wait is then seldom delayed by that of another one. */
    static void start(String name, Body body) throws Exception {
        int nth = all.size();
        all.add(startVirtual(name, () -> play(name, nth, body)));
    }

    static void play(String name, int nth, Body body) {
        try {
            begin.await();
            Thread.sleep(nth * pauseNs / 1_000_000 / 16);
            body.run(-1); /* initialises classes, which is a wait for another thread's initialisation at times */
            for (int i = 0; i < rounds; i++) {
                long from = System.nanoTime();
                body.run(i);
                told.append("T " + name + " " + from + " " + System.nanoTime() + "\n");
            }
        } catch (Exception e) {
            System.out.println("FAILED " + name + " " + e);
        }
    }

    /* A platform thread that ends the wait of another thread after a pause, each time that it is asked. */
    static SynchronousQueue<Integer> helper(String name, Body body) {
        SynchronousQueue<Integer> asks = new SynchronousQueue<>();
        Thread t = new Thread(() -> {
            try {
                for (;;) {
                    int round = asks.take();
                    Thread.sleep(pauseNs / 1_000_000);
                    body.run(round);
                }
            } catch (Exception e) {
                System.out.println("FAILED " + name + " " + e);
            }
        }, "helper-" + name);
        t.setDaemon(true);
        t.start();
        return asks;
    }

    static void parks() throws Exception {
        start("u-park", i -> LockSupport.parkNanos(pauseNs));
        start("u-sleep", i -> Thread.sleep(pauseNs / 1_000_000));
        Semaphore taken = new Semaphore(0);
        SynchronousQueue<Integer> gives = helper("gives", i -> taken.release());
        start("u-semaphore", i -> {
            gives.put(i);
            taken.acquire();
        });
        ReentrantLock lock = new ReentrantLock();
        Condition condition = lock.newCondition();
        start("u-condition", i -> {
            lock.lock();
            try {
                if (condition.awaitNanos(pauseNs) > 0)
                    throw new IllegalStateException("too early");
            } finally {
                lock.unlock();
            }
        });
    }

    /* A lock that another thread holds for the pause. */
    static void lock() throws Exception {
        ReentrantLock held = new ReentrantLock();
        SynchronousQueue<Integer> asks = new SynchronousQueue<>(), holds = new SynchronousQueue<>();
        Thread holder = new Thread(() -> {
            try {
                for (;;) {
                    int round = asks.take();
                    held.lock();
                    holds.put(round);
                    Thread.sleep(pauseNs / 1_000_000);
                    held.unlock();
                }
            } catch (InterruptedException e) {
                System.out.println("FAILED holder " + e);
            }
        }, "helper-holder");
        holder.setDaemon(true);
        holder.start();
        all.add(startVirtual("u-lock", () -> {
            try {
                begin.await();
                for (int i = 0; i < rounds; i++) {
                    asks.put(i);
                    holds.take();
                    long from = System.nanoTime();
                    held.lock();
                    told.append("T u-lock " + from + " " + System.nanoTime() + "\n");
                    held.unlock();
                }
            } catch (Exception e) {
                System.out.println("FAILED u-lock " + e);
            }
        }));
    }

    static void sockets() throws Exception {
        ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        Socket a = new Socket(server.getInetAddress(), server.getLocalPort()), b = server.accept();
        SynchronousQueue<Integer> writes = helper("writes", i -> a.getOutputStream().write(1));
        InputStream in = b.getInputStream();
        start("u-socket", i -> {
            writes.put(i);
            in.read();
        });
        SynchronousQueue<Integer> connects =
                helper("connects", i -> new Socket(server.getInetAddress(), server.getLocalPort()).close());
        start("u-accept", i -> {
            connects.put(i);
            server.accept().close();
        });
        ServerSocketChannel channels = ServerSocketChannel.open().bind(
                new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        SocketChannel c = SocketChannel.open(channels.getLocalAddress()), d = channels.accept();
        SynchronousQueue<Integer> sends = helper("sends", i -> c.write(ByteBuffer.allocate(1)));
        ByteBuffer one = ByteBuffer.allocate(1);
        start("u-channel", i -> {
            sends.put(i);
            one.clear();
            d.read(one);
        });
    }

    /* From JDK 24 on it gives up its carrier for monitors, too. */
    static void monitors() throws Exception {
        Object monitor = new Object(), held = new Object();
        start("u-wait", i -> {
            synchronized (monitor) {
                monitor.wait(pauseNs / 1_000_000);
            }
        });
        SynchronousQueue<Integer> asks = new SynchronousQueue<>(), holds = new SynchronousQueue<>();
        Thread holder = new Thread(() -> {
            try {
                for (;;) {
                    int round = asks.take();
                    synchronized (held) {
                        holds.put(round);
                        Thread.sleep(pauseNs / 1_000_000);
                    }
                }
            } catch (InterruptedException e) {
                System.out.println("FAILED holder " + e);
            }
        }, "helper-monitor");
        holder.setDaemon(true);
        holder.start();
        all.add(startVirtual("u-monitor", () -> {
            try {
                begin.await();
                for (int i = 0; i < rounds; i++) {
                    asks.put(i);
                    holds.take();
                    long from = System.nanoTime();
                    synchronized (held) {
                        told.append("T u-monitor " + from + " " + System.nanoTime() + "\n");
                    }
                }
            } catch (Exception e) {
                System.out.println("FAILED u-monitor " + e);
            }
        }));
    }

    /* Threads without a name, each for one sleep. */
    static void unnamed() throws Exception {
        start("u-starts", i -> {
            Thread t = startVirtual("", () -> {
                try {
                    Thread.sleep(pauseNs / 1_000_000);
                } catch (InterruptedException e) {
                    System.out.println("FAILED unnamed " + e);
                }
            });
            t.join();
        });
    }

    public static void main(String[] args) throws Exception {
        rounds = Integer.parseInt(args[0]);
        pauseNs = Long.parseLong(args[1]) * 1_000_000;
        parks();
        lock();
        sockets();
        monitors();
        unnamed();
        System.out.println("READY");
        System.out.flush();
        System.in.read();
        begin.countDown();
        for (Thread t : all)
            t.join();
        System.out.print(told);
        System.out.println("END");
        System.out.flush();
        System.in.read();
        System.exit(0);
    }
}
