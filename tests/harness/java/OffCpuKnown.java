import java.io.*;
import java.net.*;
import java.nio.MappedByteBuffer;
import java.nio.channels.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.locks.*;

/**
 * Threads that leave the CPU for reasons of the script, one kind each, and tell at the end of each time
 * where and how long by their own clock: "T name begin end" in CLOCK_MONOTONIC ns.
 *
 *   OffCpuKnown ROUNDS PAUSE_MS LIBRARY FIFO [DIRECTORY]
 *
 * LIBRARY is undisturbed_jni.c's, DIRECTORY on a file system where each access takes the pause (slow_fs.c). First
 * comes what waits; then, after VIRTUAL, the same in virtual threads, if there are any; then, after SPIN, a thread that
 * shall share its CPU; then, after QUOTA, one that shall have a part of one. Each begins with a line from outside, and
 * ends with END.
 */
public class OffCpuKnown {
    static final StringBuffer told = new StringBuffer();
    static int rounds;
    static long pauseNs;
    static final long SPIN_NS = 20_000_000_000L; /* at most */
    static final CountDownLatch begin = new CountDownLatch(1);
    static int nThreads;

    interface Body { void run(int round) throws Exception; }

    static void tell(String name, long from, long to) {
        told.append("T " + name + " " + from + " " + to + "\n");
    }

    static Thread start(String name, Body body) {
        int nth = nThreads++;
        Thread t = new Thread(() -> play(name, nth, body), name);
        t.start();
        return t;
    }

    /* The threads begin one after another, so that their waits do not all end at the same moment, which would cost more
     * signals in it than the budget allows. */
    static void play(String name, int nth, Body body) {
        try {
            begin.await();
            Thread.sleep(nth * pauseNs / 1_000_000 / 20);
            for (int i = 0; i < rounds; i++) {
                long from = System.nanoTime();
                body.run(i);
                tell(name, from, System.nanoTime());
            }
        } catch (Exception e) {
            System.out.println("FAILED " + name + " " + e);
        }
    }

    static native void semaphore(long ns);
    static native void pinned(Runnable r);

    static void nap() {
        try {
            Thread.sleep(pauseNs / 1_000_000);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /* Ends another thread's wait after a pause, in a thread of its own that prints nothing. */
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
        System.load(args[2]);
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
                if (i % 8 == 0) /* an entry of several steps, of which the first end long before it does */
                    Thread.sleep(1500);
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

        /* a named pipe: a helper process writes into it after the pause */
        RandomAccessFile to = new RandomAccessFile(args[3], "rw");
        InputStream from = new FileInputStream(args[3]);
        SynchronousQueue<Integer> asks = new SynchronousQueue<>();
        helper("feeder", i -> {
            asks.take();
            nap();
            to.write(1);
        });
        all.add(start("known-pipe", i -> {
            asks.put(i);
            from.read();
        }));

        /* sockets: a read that waits for the peer, a read with a time limit, an accept */
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
        Thread waits = new Thread(() -> {
            try {
                begin.await();
                System.out.println("FOREVER " + System.nanoTime());
                a.getInputStream().read(); /* nobody writes */
            } catch (Exception e) {
                System.out.println("FAILED known-forever " + e);
            }
        }, "known-forever");
        waits.setDaemon(true);
        waits.start();
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
        all.add(start("known-other", i -> semaphore(pauseNs)));
        all.add(connects());
        if (args.length > 4)
            startFiles(all, args[4]);
        say("READY");
        begin.countDown();
        end(all);
        say("VIRTUAL");
        end(hasVirtual() ? startVirtuals() : new ArrayList<>());
        spin("SPIN", 2, rounds, "known-spin");
        spin("QUOTA", 30, rounds / 3, "known-quota"); /* longer than the time slice of another program */
        System.in.read();
        System.exit(0);
    }

    /* Waits for an answer. */
    static void say(String word) throws IOException {
        System.out.println(word);
        System.out.flush();
        System.in.read();
    }

    static void end(List<Thread> all) throws InterruptedException {
        for (Thread t : all)
            t.join();
        System.out.print(told);
        System.out.println("END");
        System.out.flush();
        told.setLength(0);
    }

    /* A listener with room for two connections, which nobody accepts; the third connection is
     * tried again after a second, when there is room. Every other one has a time limit, with
     * which the JDK polls. */
    static Thread connects() {
        SynchronousQueue<ServerSocket> full = new SynchronousQueue<>();
        helper("acceptor", i -> {
            if (i >= rounds / 8)
                return;
            ServerSocket s = full.take();
            nap();
            for (int n = 0; n < 2; n++)
                s.accept().close();
        });
        Thread t = new Thread(() -> {
            try {
                begin.await();
                for (int i = 0; i < rounds / 8; i++) {
                    ServerSocket s = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                    Socket[] fill = { new Socket(s.getInetAddress(), s.getLocalPort()),
                                      new Socket(s.getInetAddress(), s.getLocalPort()) };
                    Socket third = new Socket();
                    full.put(s);
                    long from = System.nanoTime();
                    third.connect(s.getLocalSocketAddress(), i % 2 == 0 ? 0 : 60_000);
                    tell("known-connect", from, System.nanoTime());
                    third.close();
                    for (Socket one : fill)
                        one.close();
                    s.close();
                }
            } catch (Exception e) {
                System.out.println("FAILED known-connect " + e);
            }
        }, "known-connect");
        t.start();
        return t;
    }

    /* Reads and writes that bypass the page cache; fsync; access to a page of a mapping that is
     * not in memory; a sendfile for which the kernel waits for the page. */
    static void startFiles(List<Thread> all, String directory) throws IOException {
        byte[] one = new byte[1];
        RandomAccessFile file = new RandomAccessFile(directory + "/file", "rw");
        all.add(start("known-file", i -> {
            if (i % 2 == 0)
                file.read(one);
            else
                file.write(one);
        }));
        FileChannel synced = new RandomAccessFile(directory + "/synced", "rw").getChannel();
        all.add(start("known-fsync", i -> synced.force(true)));

        FileChannel cached = new RandomAccessFile(directory + "/cached", "r").getChannel();
        MappedByteBuffer map = cached.map(FileChannel.MapMode.READ_ONLY, 0, cached.size() / 2);
        all.add(start("known-fault", i -> map.get(i * 4096)));

        ServerSocketChannel server = ServerSocketChannel.open().bind(
                new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        SocketChannel to = SocketChannel.open(server.getLocalAddress());
        server.accept(); /* the socket has room for the whole file */
        all.add(start("known-disk", i -> cached.transferTo(cached.size() / 2 + i * 4096L, 4096, to)));
    }

    /* A thread that computes all the time, and prints @n times each interval of @leastMs or more
     * in which it did not run. It begins after an answer to @word. */
    static void spin(String word, long leastMs, int n, String name) throws Exception {
        CountDownLatch go = new CountDownLatch(1);
        Thread t = new Thread(() -> spin(name, go, leastMs * 1_000_000, n), name);
        t.start();
        say(word);
        go.countDown();
        end(Arrays.asList(t));
    }

    static void spin(String name, CountDownLatch go, long leastNs, int n) {
        try {
            go.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        long began = System.nanoTime(), before = began, now;
        for (; n > 0 && before - began < SPIN_NS; before = now) {
            now = System.nanoTime();
            if (now - before <= leastNs)
                continue;
            tell(name, before, now);
            n--;
            now = System.nanoTime();
        }
    }

    /* Waits that keep the carrier: within a native method or, up to JDK 23, in a monitor. On
     * newer ones a wait for a monitor gives up the carrier and is reported all the same. */
    static List<Thread> startVirtuals() throws Exception {
        List<Thread> all = new ArrayList<>();
        nThreads = 0;
        all.add(startVirtual("known-vpark", i -> pinned(() -> LockSupport.parkNanos(pauseNs))));
        all.add(startVirtual("known-vsleep", i -> pinned(OffCpuKnown::nap)));
        Object monitor = new Object();
        all.add(startVirtual("known-vwait", i -> {
            synchronized (monitor) {
                monitor.wait(pauseNs / 1_000_000);
            }
        }));

        Object held = new Object();
        SynchronousQueue<Integer> holds = new SynchronousQueue<>();
        Semaphore free = new Semaphore(1);
        helper("vholder", i -> {
            free.acquire();
            synchronized (held) {
                holds.put(i);
                nap();
            }
        });
        all.add(startVirtual("known-vlock", () -> {
            for (int i = 0; i < rounds; i++) {
                holds.take();
                long from = System.nanoTime();
                enter(held);
                tell("known-vlock", from, System.nanoTime());
                free.release();
            }
        }));

        ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        Socket a = new Socket(server.getInetAddress(), server.getLocalPort()), b = server.accept();
        SynchronousQueue<Integer> asks = new SynchronousQueue<>();
        helper("vsender", i -> {
            asks.take();
            nap();
            a.getOutputStream().write(1);
        });
        InputStream in = b.getInputStream();
        Thread first = startVirtual("first", () -> pinned(() -> read(in))); /* loads classes */
        nap();
        a.getOutputStream().write(1);
        first.join();
        all.add(startVirtual("known-vsocket", i -> {
            asks.put(i);
            pinned(() -> read(in));
        }));
        return all;
    }

    static void read(InputStream in) {
        try {
            in.read();
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    static boolean hasVirtual() {
        String version = System.getProperty("java.specification.version");
        return !version.startsWith("1.") && Integer.parseInt(version) >= 21;
    }

    interface Story { void run() throws Exception; }

    static Thread startVirtual(String name, Story story) throws Exception {
        return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, (Runnable) () -> {
            Thread.currentThread().setName(name);
            try {
                story.run();
            } catch (Exception e) {
                System.out.println("FAILED " + name + " " + e);
            }
        });
    }

    static Thread startVirtual(String name, Body body) throws Exception {
        int nth = nThreads++;
        return startVirtual(name, () -> play(name, nth, body));
    }

    static void enter(Object held) {
        synchronized (held) {
            held.hashCode();
        }
    }
}
