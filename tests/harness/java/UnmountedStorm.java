import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.concurrent.locks.*;

/**
 * Virtual threads that park for moments and end, all the time, beside a garbage collection after the other:
 *
 *   UnmountedStorm THREADS [gc]
 *
 * THREADS at a time, each of 100 parks of all kinds; the next ones begin as soon as they have ended. Says READY; for each
 * line from outside "STORM parks threads", how many there were so far, after a check of their results; at the end of its
 * input END, once all have ended.
 */
public class UnmountedStorm {
    static final int PARKS = 100;
    static final AtomicLong parks = new AtomicLong(), ended = new AtomicLong();
    static volatile boolean over;
    static volatile Object garbage;

    static void work(long number, Semaphore turn) {
        long sum = 0;
        for (int i = 0; i < PARKS; i++) {
            if (i % 10 == 0)
                LockSupport.parkNanos(UnmountedStorm.class, 1_000_000 + number % 7 * 300_000);
            else if (i % 10 == 5)
                Thread.yield();
            else if (i % 10 == 7) {
                turn.acquireUninterruptibly();
                turn.release();
            } else
                LockSupport.parkNanos(1_000 * (number % 50));
            sum += deep(i % 20, number);
            parks.incrementAndGet();
        }
        if (sum != PARKS * number)
            System.out.println("FAILED a stack is not what it was: " + sum);
        ended.incrementAndGet();
    }

    /* The park happens, and the number comes back, at many depths. */
    static long deep(int depth, long number) {
        if (depth > 0)
            return deep(depth - 1, number);
        if (number % 3 == 0)
            LockSupport.parkNanos(1_000);
        return number;
    }

    static Thread start(long number, Semaphore turn, Semaphore room) throws Exception {
        return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, (Runnable) () -> {
            try {
                work(number, turn);
            } finally {
                room.release();
            }
        });
    }

    static void startAll(int atATime) {
        Semaphore turn = new Semaphore(1), room = new Semaphore(atATime);
        try {
            for (long number = 1; !over; number++) {
                room.acquire();
                start(number, turn, room);
            }
            room.acquire(atATime);
        } catch (Exception e) {
            System.out.println("FAILED " + e);
        }
    }

    static void collect() {
        while (!over) {
            byte[][] some = new byte[200][];
            for (int i = 0; i < some.length; i++)
                some[i] = new byte[10_000];
            garbage = some;
            System.gc();
            LockSupport.parkNanos(1_000_000); /* the others run, too */
        }
    }

    public static void main(String[] args) throws Exception {
        int atATime = Integer.parseInt(args[0]);
        Thread starter = new Thread(() -> startAll(atATime), "starter");
        starter.start();
        if (args.length > 1)
            new Thread(UnmountedStorm::collect, "collector").start();
        System.out.println("READY");
        System.out.flush();
        while (System.in.read() > 0)
            System.out.println("STORM " + parks + " " + ended);
        over = true;
        starter.join();
        System.out.println("END");
        System.exit(0);
    }
}
