import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Parks by the hundred thousand a second while an agent comes and goes: pairs of threads that hand a permit
 * to and fro, one whose parks return at once, one that is parked from beginning to end, and one that is
 * interrupted in its parks. A line on stdin: "STORM parks interrupts" is printed; the end of stdin: the end,
 * "END" if everything was as it must be. Argument: pairs.
 */
public class ParkStorm {
    static volatile boolean going = true;
    static volatile boolean mayWake, woke;
    static final AtomicLong parks = new AtomicLong(), interrupts = new AtomicLong();
    static volatile String wrong;

    interface Body {
        void run() throws Exception;
    }

    static Thread start(String name, Body body) {
        Thread t = new Thread(() -> {
            try {
                body.run();
            } catch (Throwable e) {
                wrong = name + ": " + e;
            }
        }, name);
        t.start();
        return t;
    }

    static void pair(String name) {
        Semaphore there = new Semaphore(0), back = new Semaphore(0);
        start(name + "-ping", () -> {
            for (long n = 1; going; n++) {
                there.release();
                back.acquire();
                if (n % 1000 == 0) parks.addAndGet(2000);
            }
            there.release();
        });
        start(name + "-pong", () -> {
            while (going) {
                there.acquire();
                back.release();
            }
        });
    }

    static void atOnce() {
        Thread me = Thread.currentThread();
        while (going) {
            for (int i = 0; i < 1000; i++) {
                LockSupport.unpark(me);
                LockSupport.park(me);
            }
            parks.addAndGet(1000);
            LockSupport.parkNanos(20_000);
        }
    }

    /** A single wait throughout: it enters the JVM by one native method of Unsafe.park and
     * returns after another one was installed. */
    static void held() {
        while (!mayWake) LockSupport.park("held");
        woke = true;
    }

    static void interrupted() {
        while (going) {
            LockSupport.park("interrupted");
            if (Thread.interrupted()) interrupts.incrementAndGet();
        }
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < Integer.parseInt(args[0]); i++) pair("pair-" + i);
        start("at-once", ParkStorm::atOnce);
        Thread held = start("held", ParkStorm::held);
        Thread patient = start("interrupted", ParkStorm::interrupted);
        long sent = 0;
        System.out.println("READY");
        for (int c = System.in.read(); c >= 0; c = System.in.read()) {
            long seen = interrupts.get();
            patient.interrupt();
            for (int i = 0; i < 5000 && interrupts.get() == seen; i++) Thread.sleep(1);
            sent++;
            if (interrupts.get() != sent) wrong = "an interrupt was lost";
            System.out.println("STORM " + parks.get() + " " + interrupts.get());
        }
        going = false;
        patient.interrupt();
        mayWake = true;
        LockSupport.unpark(held);
        held.join(10_000);
        if (!woke) wrong = "a thread that was parked before is parked for ever";
        System.out.println(wrong == null ? "END" : "WRONG " + wrong);
        System.exit(0);
    }
}
