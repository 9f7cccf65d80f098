import java.io.*;
import java.net.*;
import java.nio.channels.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.locks.*;

/**
 * Threads that leave the CPU for reasons of the script, one kind each, and tell at the end of each time
 * where and how long by their own clock: "T name begin end" in CLOCK_MONOTONIC ns. OffCpuKnown ROUNDS PAUSE_MS.
 */
public class OffCpuKnown {
    static final StringBuffer told = new StringBuffer();
    static int rounds;
    static long pauseNs;
    static final CountDownLatch begin = new CountDownLatch(1);

    interface Body { void run(int round) throws Exception; }

    static void tell(String name, long from, long to) {
        told.append("T " + name + " " + from + " " + to + "\n");
    }

    static Thread start(String name, Body body) {
        Thread t = new Thread(() -> play(name, body), name);
        t.start();
        return t;
    }

    static void play(String name, Body body) {
        try {
            begin.await();
            for (int i = 0; i < rounds; i++) {
                long from = System.nanoTime();
                body.run(i);
                tell(name, from, System.nanoTime());
            }
        } catch (Exception e) {
            System.out.println("FAILED " + name + " " + e);
        }
    }

    static void nap() {
        try {
            Thread.sleep(pauseNs / 1_000_000);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /* Something that ends the wait of another thread after a pause; silent, in a thread of its own. */
    static void helper(String name, Body body) {
        Thread t = new Thread(() -> {
            try {
                begin.await();
                for (int i = 0; i < rounds; i++)
                    body.run(i);
            } catch (Exception e) {
                System.out.println("FAILED " + name + " " + e);
            }
        }, "helper-" + name);
        t.setDaemon(true);
        t.start();
    }

    public static void main(String[] args) throws Exception {
        rounds = Integer.parseInt(args[0]);
        pauseNs = Long.parseLong(args[1]) * 1_000_000;
        List<Thread> all = new ArrayList<>();

        all.add(start("known-sleep", i -> Thread.sleep(pauseNs / 1_000_000)));
        all.add(start("known-park", i -> LockSupport.parkNanos(OffCpuKnown.class, pauseNs)));
        Object monitor = new Object();
        all.add(start("known-wait", i -> {
            synchronized (monitor) {
                monitor.wait(pauseNs / 1_000_000);
            }
        }));

        /* a monitor that another thread holds for the pause */
        Object held = new Object();
        SynchronousQueue<Integer> holds = new SynchronousQueue<>();
        Semaphore free = new Semaphore(1);
        helper("holder", i -> {
            free.acquire();
            synchronized (held) {
                holds.put(i);
                nap();
            }
        });
        Thread lock = new Thread(() -> {
            try {
                begin.await();
                for (int i = 0; i < rounds; i++) {
                    holds.take();
                    long from = System.nanoTime();
                    enter(held);
                    tell("known-lock", from, System.nanoTime());
                    free.release();
                }
            } catch (InterruptedException e) {
                System.out.println("FAILED known-lock " + e);
            }
        }, "known-lock");
        lock.start();
        all.add(lock);

        /* a pipe of the kernel: the reader reads what a child process echoes after the pause */
        Process child = new ProcessBuilder("/bin/sh", "-c",
                "while read line; do sleep " + pauseNs / 1e9 + "; echo $line; done").start();
        OutputStream to = child.getOutputStream();
        InputStream from = child.getInputStream();
        all.add(start("known-pipe", i -> {
            to.write('x');
            to.write('\n');
            to.flush();
            readAll(from, 2);
        }));

        /* sockets: a reader that waits for the peer, one with a time limit, an accept */
        ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        Socket a = new Socket(server.getInetAddress(), server.getLocalPort());
        Socket b = server.accept();
        SynchronousQueue<Integer> writes = new SynchronousQueue<>();
        helper("writer", i -> {
            writes.take();
            nap();
            a.getOutputStream().write(1);
        });
        all.add(start("known-socket", i -> {
            writes.put(i);
            b.getInputStream().read();
        }));
        SynchronousQueue<Integer> connects = new SynchronousQueue<>();
        helper("connector", i -> {
            connects.take();
            nap();
            new Socket(server.getInetAddress(), server.getLocalPort()).close();
        });
        all.add(start("known-accept", i -> {
            connects.put(i);
            server.accept().close();
        }));

        Selector selector = Selector.open();
        all.add(start("known-poll", i -> selector.select(pauseNs / 1_000_000)));

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
        child.destroy();
        System.exit(0);
    }

    static void enter(Object held) {
        synchronized (held) {
            held.hashCode();
        }
    }

    static void readAll(InputStream from, int n) throws IOException {
        while (n > 0)
            n -= from.read(new byte[n], 0, n);
    }
}
