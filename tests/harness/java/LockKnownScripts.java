import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Phaser;
import java.util.concurrent.Semaphore;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.concurrent.locks.StampedLock;

/** The kinds of waits that LockKnown plays. */
class LockKnownScripts {
    static final String CONDITION = "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject";

    static class Monitor {
    }

    static class Mailbox {
    }

    /** Entering a monitor. */
    static class Enter extends LockKnown.Script {
        Enter(String name) {
            this(name, new Monitor(), "LockKnownScripts$Monitor");
        }

        Enter(String name, Object lock, String lockClass) {
            super("enter", name, lock, lockClass);
            owned = true;
        }

        void direct() {
            synchronized (lock) {
                held();
            }
        }

        void block() {
            arrive();
            synchronized (lock) {
                left();
            }
        }
    }

    /** A new monitor for every round, so that each contention is its first. */
    static class EnterFresh extends Enter {
        EnterFresh(String name) {
            super(name);
            fresh = true;
        }

        void prepare() {
            lock = new Monitor();
        }
    }

    /** The holder sleeps: from JDK 24 on a virtual thread then has no carrier, and the monitor
     * does not know which thread owns it. */
    static class EnterUnmounted extends EnterFresh {
        EnterUnmounted(String name) {
            super(name);
            virtualDirector = true;
        }
    }

    /** A static synchronized method: the lock is a java.lang.Class. */
    static class EnterStatic extends LockKnown.Script {
        static EnterStatic only;

        EnterStatic(String name) {
            super("enter", name, EnterStatic.class, "java.lang.Class for LockKnownScripts$EnterStatic");
            owned = true;
            method = "inside";
            only = this;
        }

        static synchronized void inside() {
            only.left();
        }

        void direct() {
            synchronized (EnterStatic.class) {
                held();
            }
        }

        void block() {
            arrive();
            inside();
        }
    }

    static class Wait extends LockKnown.Script {
        final long limit_ms;

        Wait(String name, long limit_ms) {
            super("wait", name, new Mailbox(), "LockKnownScripts$Mailbox");
            this.limit_ms = limit_ms;
            limited = limit_ms > 0;
        }

        void direct() {
            held();
            synchronized (lock) {
                lock.notify();
            }
        }

        void block() throws Exception {
            synchronized (lock) {
                arrive();
                lock.wait(limit_ms);
                left();
            }
        }
    }

    static class WaitTimed extends Wait {
        WaitTimed(String name) {
            super(name, 11);
            limited = true;
        }

        void direct() {
            held();
        }
    }

    static class Join extends LockKnown.Script {
        Thread target;

        Join(String name) {
            super("wait", name, null, "java.lang.Thread");
            fresh = true;
        }

        void prepare() {
            lock = target = new Thread(() -> held(), name + "-director-joined");
        }

        void direct() throws Exception {
            target.start();
            target.join();
        }

        void block() throws Exception {
            arrive();
            target.join();
            left();
        }
    }

    static class Locked extends LockKnown.Script {
        final Lock mine, theirs;

        /** @lock: the object that the event must name; @mine, @theirs: the side of the waiter and
         * that of the director. */
        Locked(String name, Object lock, Lock mine, Lock theirs, boolean owned) {
            super("park", name, lock, lock.getClass().getName().replaceAll("[$].*", ""));
            this.mine = mine;
            this.theirs = theirs;
            this.owned = owned;
        }

        Locked(String name, ReentrantLock lock) {
            this(name, lock, lock, lock, true);
        }

        void direct() {
            theirs.lock();
            held();
            theirs.unlock();
        }

        void block() throws Exception {
            arrive();
            mine.lock();
            left();
            mine.unlock();
        }
    }

    static class TryLock extends Locked {
        TryLock(String name) {
            super(name, new ReentrantLock());
            limited = true;
        }

        void block() throws Exception {
            arrive();
            boolean mine = this.mine.tryLock(4, TimeUnit.MILLISECONDS);
            left();
            if (mine) this.mine.unlock();
        }
    }

    static class Interruptibly extends Locked {
        Interruptibly(String name) {
            super(name, new ReentrantLock(true));
        }

        void block() throws Exception {
            arrive();
            mine.lockInterruptibly();
            left();
            mine.unlock();
        }
    }

    static class Await extends LockKnown.Script {
        final ReentrantLock guard = new ReentrantLock();
        final Condition condition = guard.newCondition();

        Await(String name) {
            super("park", name, null, CONDITION);
            lock = condition;
        }

        void direct() {
            held();
            guard.lock();
            condition.signal();
            guard.unlock();
        }

        void block() throws Exception {
            guard.lock();
            arrive();
            condition.await();
            left();
            guard.unlock();
        }
    }

    static class AwaitTimed extends Await {
        AwaitTimed(String name) {
            super(name);
            limited = true;
        }

        void direct() {
            held();
        }

        void block() throws Exception {
            guard.lock();
            arrive();
            condition.awaitNanos(7_000_000);
            left();
            guard.unlock();
        }
    }

    static class Acquire extends LockKnown.Script {
        final Semaphore semaphore;

        Acquire(String name, boolean fair) {
            super("park", name, new Semaphore(0, fair), "java.util.concurrent.Semaphore");
            semaphore = (Semaphore) lock;
        }

        void direct() {
            held();
            semaphore.release();
        }

        void block() throws Exception {
            arrive();
            semaphore.acquire();
            left();
        }
    }

    static class Latch extends LockKnown.Script {
        Latch(String name) {
            super("park", name, null, "java.util.concurrent.CountDownLatch");
            fresh = true;
        }

        void prepare() {
            lock = new CountDownLatch(1);
        }

        void direct() {
            held();
            ((CountDownLatch) lock).countDown();
        }

        void block() throws Exception {
            CountDownLatch latch = (CountDownLatch) lock;
            arrive();
            latch.await();
            left();
        }
    }

    static class Phase extends LockKnown.Script {
        final Phaser phaser;

        Phase(String name) {
            super("park", name, new Phaser(2), "java.util.concurrent.Phaser");
            phaser = (Phaser) lock;
        }

        void direct() {
            held();
            phaser.arrive();
        }

        void block() {
            arrive();
            phaser.arriveAndAwaitAdvance();
            left();
        }
    }

    static class Barrier extends LockKnown.Script {
        final CyclicBarrier barrier;

        Barrier(String name) {
            super("park", name, new CyclicBarrier(2), CONDITION + "|java.util.concurrent.CyclicBarrier");
            barrier = (CyclicBarrier) lock;
        }

        void direct() throws Exception {
            held();
            barrier.await();
        }

        void block() throws Exception {
            arrive();
            barrier.await();
            left();
        }
    }

    static class Take extends LockKnown.Script {
        final BlockingQueue<Integer> queue;

        Take(String name, BlockingQueue<Integer> queue, String classes) {
            super("park", name, queue, classes);
            this.queue = queue;
            spins = queue instanceof SynchronousQueue; // up to JDK 20
        }

        void direct() throws Exception {
            held();
            queue.put(1);
        }

        void block() throws Exception {
            arrive();
            queue.take();
            left();
        }
    }

    static class Put extends LockKnown.Script {
        final BlockingQueue<Integer> queue = new ArrayBlockingQueue<>(1);

        Put(String name) {
            super("park", name, null, CONDITION + "|java.util.concurrent.ArrayBlockingQueue");
            lock = queue;
        }

        void direct() throws Exception {
            queue.clear();
            queue.put(1);
            held();
            queue.take();
        }

        void block() throws Exception {
            arrive();
            queue.put(2);
            left();
        }
    }

    static class Future extends LockKnown.Script {
        FutureTask<Integer> task;

        Future(String name) {
            super("park", name, null, "java.util.concurrent.FutureTask");
            fresh = true;
        }

        void prepare() {
            lock = task = new FutureTask<>(() -> 1);
        }

        void direct() {
            held();
            task.run();
        }

        void block() throws Exception {
            arrive();
            task.get();
            left();
        }
    }

    static class Completable extends LockKnown.Script {
        CompletableFuture<Integer> future;

        Completable(String name) {
            super("park", name, null, "java.util.concurrent.CompletableFuture");
            fresh = true;
        }

        void prepare() {
            lock = future = new CompletableFuture<>();
        }

        void direct() {
            held();
            future.complete(1);
        }

        void block() throws Exception {
            arrive();
            future.get();
            left();
        }
    }

    static class Park extends LockKnown.Script {
        volatile Thread waiter;
        volatile int open; // a park may return without a reason

        /** @lock: the blocker, or null. */
        Park(String name, Object lock, boolean pinned) {
            super("park", name, lock, "LockKnownScripts$Mailbox");
            this.pinned = pinned;
            method = "park";
        }

        void direct() {
            held();
            open = go;
            LockSupport.unpark(waiter);
        }

        void park() {
            int round = go;
            arrive();
            while (open != round)
                if (lock == null) LockSupport.park();
                else LockSupport.park(lock);
            left();
        }

        void block() {
            waiter = Thread.currentThread();
            if (pinned) {
                synchronized (this) {
                    park();
                }
            } else {
                park();
            }
        }
    }

    static class ParkNanos extends LockKnown.Script {
        ParkNanos(String name) {
            super("park", name, new Mailbox(), "LockKnownScripts$Mailbox");
            limited = true;
        }

        void direct() {
            held();
        }

        void block() {
            arrive();
            LockSupport.parkNanos(lock, 9_000_000);
            left();
        }
    }

    static class MonitorCrowd extends LockKnown.Crowd {
        MonitorCrowd(String name) {
            super("enter", name, "LockKnownScripts$Monitor");
            for (int i = 0; i < 2; i++) locks[i] = new Monitor();
        }

        void enter(Object lock, LockKnown.Step inside) throws Exception {
            synchronized (lock) {
                inside.run();
            }
        }
    }

    static class LockCrowd extends LockKnown.Crowd {
        LockCrowd(String name, boolean fair) {
            super("park", name, "java.util.concurrent.locks.ReentrantLock");
            for (int i = 0; i < 2; i++) locks[i] = new ReentrantLock(fair);
        }

        void enter(Object lock, LockKnown.Step inside) throws Exception {
            ((ReentrantLock) lock).lock();
            try {
                inside.run();
            } finally {
                ((ReentrantLock) lock).unlock();
            }
        }
    }

    static List<LockKnown.Script> all() {
        List<LockKnown.Script> scripts = new ArrayList<>();
        ReentrantReadWriteLock one = new ReentrantReadWriteLock(), two = new ReentrantReadWriteLock(true);
        ReentrantReadWriteLock three = new ReentrantReadWriteLock();
        StampedLock four = new StampedLock(), five = new StampedLock();
        scripts.add(new Enter("enter"));
        scripts.add(new Enter("another-enter-with-a-long-name"));
        scripts.add(new EnterFresh("enter-fresh"));
        scripts.add(new EnterUnmounted("enter-unmounted"));
        scripts.add(new EnterStatic("enter-static"));
        scripts.add(new Enter("enter-array", new int[1], "[I"));
        // HotSpot itself locks such an array while it links or initialises a class
        scripts.add(new Enter("enter-init", new int[0], "class initialization"));
        scripts.add(new Wait("wait", 0));
        scripts.add(new Wait("wait-limited", 10_000));
        scripts.add(new WaitTimed("wait-timed"));
        scripts.add(new Join("join"));
        scripts.add(new Locked("reentrant", new ReentrantLock()));
        scripts.add(new Locked("reentrant-fair", new ReentrantLock(true)));
        scripts.add(new Interruptibly("interruptibly"));
        scripts.add(new TryLock("try-lock"));
        scripts.add(new Locked("read-for-writer", one, one.readLock(), one.writeLock(), true));
        scripts.add(new Locked("write-for-reader", two, two.writeLock(), two.readLock(), false));
        scripts.add(new Locked("write-for-writer", three, three.writeLock(), three.writeLock(), true));
        scripts.add(new Locked("stamped-write", four, four.asWriteLock(), four.asWriteLock(), false));
        scripts.add(new Locked("stamped-read", five, five.asReadLock(), five.asWriteLock(), false));
        scripts.add(new Await("await"));
        scripts.add(new AwaitTimed("await-timed"));
        scripts.add(new Acquire("semaphore", false));
        scripts.add(new Acquire("semaphore-fair", true));
        scripts.add(new Latch("latch"));
        scripts.add(new Barrier("barrier"));
        scripts.add(new Phase("phaser"));
        scripts.add(new Take("take-array", new ArrayBlockingQueue<>(4), CONDITION + "|java.util.concurrent.ArrayBlockingQueue"));
        scripts.add(new Take("take-linked", new LinkedBlockingQueue<>(), CONDITION + "|java.util.concurrent.LinkedBlockingQueue"));
        scripts.add(new Take("take-synchronous", new SynchronousQueue<>(),
                             "java.util.concurrent.SynchronousQueue|java.util.concurrent.LinkedTransferQueue"));
        scripts.add(new Put("put-array"));
        scripts.add(new Future("future"));
        scripts.add(new Completable("completable"));
        scripts.add(new Park("park-blocker", new Mailbox(), false));
        scripts.add(new Park("park-bare", null, false));
        scripts.add(new Park("park-pinned", new Mailbox(), true));
        scripts.add(new ParkNanos("park-nanos"));
        return scripts;
    }

    static List<LockKnown.Crowd> crowds() {
        List<LockKnown.Crowd> crowds = new ArrayList<>();
        crowds.add(new MonitorCrowd("monitor-crowd"));
        crowds.add(new LockCrowd("lock-crowd", false));
        crowds.add(new LockCrowd("fair-crowd", true));
        return crowds;
    }
}
