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
 * and the thread "allocator" allocates so much that a collection stops them all every few hundredths of a second. It ends when
 * its input does.
 */
public class WorkInCollections {
    static final int LIVE_MAX = 400_000; // arrays of 400 bytes
    static volatile Object sink;

    static void clerk() {
        LinkedBlockingQueue<String> replies = new LinkedBlockingQueue<>();
        try {
            while (replies.poll(19, TimeUnit.MILLISECONDS) == null) { }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void allocate() {
        List<Object> live = new ArrayList<>();
        try {
            for (;;) {
                if (live.size() >= LIVE_MAX) live.clear();
                live.add(new byte[400]);
                sink = new HashMap<>(16);
                if (live.size() % 2000 == 0) Thread.sleep(1);
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static void start(String name, Runnable work) {
        Thread thread = new Thread(work, name);
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
        start("allocator", WorkInCollections::allocate);
        System.out.println("READY");
        while (System.in.read() >= 0) { }
    }
}
