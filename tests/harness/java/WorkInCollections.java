import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Prints READY; then a pool and some timers have nothing to do for most of the time, the thread "clerk" waits for a reply,
 * the thread "customer" for a monitor that the thread "seller" holds, and the thread "allocator" allocates so much that a
 * collection stops them all every few hundredths of a second. It ends when its input does.
 */
public class WorkInCollections {
    static final int LIVE_MAX = 400_000; // arrays of 400 bytes
    static volatile Object sink;

    static class Shop { }
    static final Shop shop = new Shop();

    interface Work {
        void run() throws InterruptedException;
    }

    static void clerk() throws InterruptedException {
        LinkedBlockingQueue<String> replies = new LinkedBlockingQueue<>();
        while (replies.poll(19, TimeUnit.MILLISECONDS) == null) { }
    }

    static void seller() throws InterruptedException {
        for (;;) {
            synchronized (shop) {
                Thread.sleep(15);
            }
            Thread.sleep(4);
        }
    }

    static void customer() throws InterruptedException {
        for (;;) {
            synchronized (shop) {
                sink = shop;
            }
            Thread.sleep(3);
        }
    }

    static void allocate() throws InterruptedException {
        List<Object> live = new ArrayList<>();
        for (;;) {
            if (live.size() >= LIVE_MAX) live.clear();
            live.add(new byte[400]);
            sink = new HashMap<>(16);
            if (live.size() % 2000 == 0) Thread.sleep(1);
        }
    }

    static void start(String name, Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
    }

    public static void main(String[] args) throws Exception {
        ScheduledThreadPoolExecutor pool = new ScheduledThreadPoolExecutor(6, work -> {
            Thread thread = new Thread(work, "worker");
            thread.setDaemon(true);
            return thread;
        });
        for (int i = 0; i < 6; i++) pool.scheduleAtFixedRate(() -> { }, 0, 23 + i, TimeUnit.MILLISECONDS);
        for (int i = 0; i < 4; i++) {
            new Timer("timer", true).schedule(new TimerTask() {
                @Override public void run() { }
            }, 0, 21 + i);
        }
        start("clerk", WorkInCollections::clerk);
        start("seller", WorkInCollections::seller);
        start("customer", WorkInCollections::customer);
        start("allocator", WorkInCollections::allocate);
        System.out.println("READY");
        while (System.in.read() >= 0) { }
    }
}
