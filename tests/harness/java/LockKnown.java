import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;

/**
 * Waits that are known: each script makes one thread (its waiter) wait for another (its director) so
 * many times, for 5 to 30 ms; crowds of eight fight over two locks. At the end everything is told, in
 * nanoTime(), which is the clock of the events:
 *
 *   LOCK label class[|class] identityHashCode
 *   WAIT kind thread label begin end owner|-|? method pinned|free limited|unlimited sure|chance
 *   HOLD label thread from until
 *
 * owner "?": see who holds it. "chance": a thread of a crowd may find the lock free; a first wait may find
 * that loading the JDK's classes took as long as the wait was to take. Arguments: rounds, then any of gc
 * (System.gc() all the time), virtual (waiters and crowds are virtual threads). Starts at the first line
 * on stdin, ends at the second.
 */
public class LockKnown {
    static final List<String> truth = new ArrayList<>(); // the main thread's
    static int rounds;
    static boolean virtual;

    interface Step {
        void run() throws Exception;
    }

    static void tell(Object label, Object lock, String classes) {
        truth.add("LOCK " + label + " " + classes + " " + System.identityHashCode(lock));
    }

    static void nap() {
        sleep(1);
    }

    static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Virtual threads by reflection, so that this compiles for 8. */
    static Thread thread(String name, boolean virtual, Step body) {
        Runnable run = () -> {
            try {
                body.run();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        };
        if (!virtual) return new Thread(run, name);
        try {
            Class<?> type = Class.forName("java.lang.Thread$Builder$OfVirtual");
            Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
            builder = type.getMethod("name", String.class).invoke(builder, name);
            return (Thread) type.getMethod("unstarted", Runnable.class).invoke(builder, run);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    /** One way of waiting. */
    abstract static class Script {
        final String kind, name, classes;
        String method; // the waiter's method that calls into the JDK
        Object lock;
        boolean owned, pinned, fresh; // fresh: a new lock object for every round
        boolean spins; // the waiter yields before it waits, which may take longer than the wait
        boolean virtualDirector; // for runs in which the waiters are virtual threads
        boolean limited; // the wait has a time limit
        final Object[] locks;
        final long[] begin, end, from, until;
        volatile int go, arrived, done; // the round
        private int round;

        Script(String kind, String name, Object lock, String classes) {
            this.kind = kind;
            this.name = name;
            this.lock = lock;
            this.classes = classes;
            method = "block";
            locks = new Object[rounds + 1];
            begin = new long[rounds + 1];
            end = new long[rounds + 1];
            from = new long[rounds + 1];
            until = new long[rounds + 1];
        }

        /** The director: makes sure that the waiter will wait, calls wait(), then lets it go. */
        abstract void direct() throws Exception;

        /** The waiter: calls arrive(), waits, calls left(). */
        abstract void block() throws Exception;

        void prepare() {
        }

        final void arrive() {
            begin[round] = System.nanoTime();
            arrived = round;
        }

        final void left() {
            end[round] = System.nanoTime();
        }

        /** direct() calls it while the waiter should wait. */
        final void held() {
            int r = go + 1;
            from[r] = System.nanoTime();
            go = r;
            while (arrived != r) nap();
            sleep(5 + r * 7 % 26);
            until[r] = System.nanoTime();
        }

        void director() throws Exception {
            for (int r = 1; r <= rounds; r++) {
                prepare();
                locks[r] = lock;
                direct();
                while (done != r) nap();
            }
        }

        void waiter() throws Exception {
            for (int r = 1; r <= rounds; r++) {
                while (go != r) nap();
                round = r;
                block();
                done = r;
            }
        }

        /** The program's frame directly below the JDK's. */
        final String frame() {
            Class<?> type = getClass();
            for (;; type = type.getSuperclass())
                for (java.lang.reflect.Method m : type.getDeclaredMethods())
                    if (m.getName().equals(method)) return type.getName() + "." + method;
        }

        void report() {
            for (int r = 1; r <= rounds; r++) {
                String label = fresh ? name + "#" + r : name;
                if (locks[r] != null && (fresh || r == 1)) tell(label, locks[r], classes);
                if (locks[r] == null) label = "-";
                truth.add("WAIT " + kind + " " + name + "-waiter " + label + " " + begin[r] + " " + end[r] + " " +
                          (owned ? name + "-director" : "-") + " " + frame() + " " + (pinned ? "pinned" : "free") + " " +
                          (limited ? "limited" : "unlimited") + (r == 1 || spins ? " chance" : " sure"));
                if (owned) truth.add("HOLD " + label + " " + name + "-director " + from[r] + " " + until[r]);
            }
        }
    }

    /** What a member of a crowd does while it holds the lock. Not a lambda, because linking one
     * takes locks of the JDK. */
    static class Visit implements Step {
        final Crowd crowd;
        final int id, which;
        final long begin;

        Visit(Crowd crowd, int id, int which) {
            this.crowd = crowd;
            this.id = id;
            this.which = which;
            begin = System.nanoTime();
        }

        public void run() {
            long from = System.nanoTime();
            if (virtual) Crowd.spin(Crowd.HOLD_MS); // a sleep would unmount the thread, or be a park
            else LockKnown.sleep(Crowd.HOLD_MS);
            crowd.visits[id].add(new long[] {which, begin, from, System.nanoTime()});
        }
    }

    /** Eight threads with two locks; the scheduler determines which thread waits how long for
     * which other. */
    @SuppressWarnings("unchecked")
    abstract static class Crowd {
        static final int THREADS = 8, HOLD_MS = 4;
        final String kind, name, classes;
        final Object[] locks = new Object[2];
        final List<long[]>[] visits = new List[THREADS]; // lock, arrival, begin and end of holding it

        Crowd(String kind, String name, String classes) {
            this.kind = kind;
            this.name = name;
            this.classes = classes;
            for (int i = 0; i < THREADS; i++) visits[i] = new ArrayList<>();
        }

        /** Enters, calls inside(), leaves. */
        abstract void enter(Object lock, Step inside) throws Exception;

        void member(int id) throws Exception {
            for (int r = 0; r < rounds; r++) {
                LockKnown.sleep(1 + (id * 3 + r) % 5); // so that most come while somebody else is inside
                int which = (id + r / 3) % 2;
                enter(locks[which], new Visit(this, id, which));
            }
        }

        static void spin(int ms) {
            long until = System.nanoTime() + ms * 1_000_000L;
            while (System.nanoTime() < until) Thread.yield();
        }

        void report() {
            for (int i = 0; i < 2; i++) tell(name + "@" + i, locks[i], classes);
            for (int id = 0; id < THREADS; id++)
                for (long[] v : visits[id]) {
                    String label = name + "@" + v[0], thread = name + "-" + id;
                    truth.add("WAIT " + kind + " " + thread + " " + label + " " + v[1] + " " + v[2] + " ? " +
                              getClass().getName() + ".enter free unlimited chance");
                    truth.add("HOLD " + label + " " + thread + " " + v[2] + " " + v[3]);
                }
        }
    }

    static void collect() throws Exception {
        for (;;) {
            System.gc();
            Thread.sleep(5);
        }
    }

    public static void main(String[] args) throws Exception {
        rounds = Integer.parseInt(args[0]);
        boolean gc = false;
        for (String arg : args) {
            gc |= arg.equals("gc");
            virtual |= arg.equals("virtual");
        }
        PrintStream out = System.out;
        List<Script> scripts = LockKnownScripts.all();
        List<Crowd> crowds = LockKnownScripts.crowds();
        List<Thread> threads = new ArrayList<>();
        for (Script s : scripts) {
            threads.add(thread(s.name + "-director", virtual && s.virtualDirector, s::director));
            threads.add(thread(s.name + "-waiter", virtual, s::waiter));
        }
        for (Crowd c : crowds)
            for (int i = 0; i < Crowd.THREADS; i++) {
                int id = i;
                threads.add(thread(c.name + "-" + id, virtual, () -> c.member(id)));
            }
        // what belongs to virtual threads alone is there from the first one on
        if (virtual) thread("first", true, () -> sleep(10)).start();
        sleep(20);
        out.println("READY");
        System.in.read();
        if (gc) {
            Thread collector = thread("collector", false, LockKnown::collect);
            collector.setDaemon(true);
            collector.start();
        }
        for (Thread t : threads) t.start();
        for (Thread t : threads) t.join();
        for (Script s : scripts) s.report();
        for (Crowd c : crowds) c.report();
        for (String line : truth) out.println(line);
        out.println("END");
        while (System.in.read() != 'q') continue;
        System.exit(0);
    }
}
