import java.util.concurrent.locks.LockSupport;

/**
 * Threads whose states are known, each state in a method of its own, timed by the program itself. After
 * every line of input it says for each thread how long it has been in each method so far.
 * WallKnown [PARKED]: so many parked threads beside.
 */
public class WallKnown {
	static volatile boolean done;
	static final Object never = new Object();

	abstract static class Worker extends Thread {
		final String[] methods;
		final long[] ns;
		volatile int now = -1;
		volatile long since;

		Worker(String name, String... methods) {
			super(name);
			this.methods = methods;
			ns = new long[methods.length];
			setDaemon(true);
		}

		abstract void step(int i) throws Exception;

		@Override
		public void run() {
			try {
				long t = System.nanoTime();
				since = t;
				for (int i = 0; !done; i = (i + 1) % methods.length) {
					now = i;
					step(i);
					long u = System.nanoTime();
					synchronized (ns) {
						ns[i] += u - t;
						since = u;
					}
					t = u;
				}
			} catch (Exception e) {
				e.printStackTrace();
			}
		}

		String times() {
			StringBuilder s = new StringBuilder("TIMES " + getName());
			synchronized (ns) {
				for (int i = 0; i < ns.length; i++)
					s.append(" ").append(methods[i]).append("=")
						.append(ns[i] + (i == now ? System.nanoTime() - since : 0));
			}
			return s.toString();
		}
	}

	static void sleeping(long ms) throws InterruptedException {
		Thread.sleep(ms);
	}

	static void waiting(long ms) throws InterruptedException {
		synchronized (Thread.currentThread()) {
			Thread.currentThread().wait(ms);
		}
	}

	static void parked(long ms) {
		long end = System.nanoTime() + ms * 1_000_000;
		for (long now; (now = System.nanoTime()) < end;)
			LockSupport.parkNanos(end - now);
	}

	static long running(long ms) {
		long end = System.nanoTime() + ms * 1_000_000, n = 0;
		while (System.nanoTime() < end)
			n++;
		return n;
	}

	static void forever() throws InterruptedException {
		synchronized (never) {
			while (!done)
				never.wait();
		}
	}

	public static void main(String[] args) throws Exception {
		Worker[] workers = {
			new Worker("wall-runs", "running") {
				void step(int i) {
					running(100);
				}
			},
			new Worker("wall-forever", "forever") {
				void step(int i) throws Exception {
					forever();
				}
			},
			new Worker("wall-mixed", "sleeping", "waiting", "parked", "running") {
				void step(int i) throws Exception {
					if (i == 0)
						sleeping(40);
					else if (i == 1)
						waiting(30);
					else if (i == 2)
						parked(20);
					else
						running(10);
				}
			},
			/* in step with the interval of 50 ms */
			new Worker("wall-rhythm", "step", "running") {
				long begin = System.nanoTime();
				long n;

				void step(int i) throws Exception {
					if (i == 1) {
						running(5);
						return;
					}
					n++;
					long left = begin + n * 50_000_000 - System.nanoTime();
					if (left > 0)
						LockSupport.parkNanos(left);
				}
			},
		};
		int parked = args.length > 0 ? Integer.parseInt(args[0]) : 0;
		for (int i = 0; i < parked; i++) {
			Thread t = new Thread(null, () -> LockSupport.park(never), "idle-" + i, 128 << 10);
			t.setDaemon(true);
			t.start();
		}
		for (Worker w : workers)
			w.start();
		Thread.sleep(300);
		System.out.println("READY");
		while (System.in.read() >= 0) {
			for (Worker w : workers)
				System.out.println(w.times());
			System.out.println("TIME " + System.nanoTime());
		}
		done = true;
	}
}
