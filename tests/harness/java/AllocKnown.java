import java.lang.management.ManagementFactory;

/**
 * Allocations that are known: four threads, each of one kind. Says READY, and at each line of input
 * allocates and says what it has allocated by the thread's own counter, and END.
 * AllocKnown MEGABYTES [virtual]: so much in each thread; by virtual threads, whose counters nobody has,
 * as often as gives so much in another thread.
 */
public class AllocKnown {
	static final class Node {
		long a, b, c;
	}

	static volatile Object sink;

	abstract static class Kind extends Thread {
		final String type;
		final long bytes;
		long allocated;

		Kind(String name, String type, long bytes) {
			super(name);
			this.type = type;
			this.bytes = bytes;
		}

		abstract void some();

		static long counter() {
			return ((com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean())
				.getThreadAllocatedBytes(Thread.currentThread().getId());
		}

		@Override
		public void run() {
			long before = counter();
			while (counter() - before < bytes)
				some();
			allocated = counter() - before;
		}

		/* Thread.ofVirtual().name(name).unstarted(this), compiled for JDK 8 */
		Thread virtual() throws Exception {
			Class<?> type = Class.forName("java.lang.Thread$Builder$OfVirtual");
			Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
			some();
			long before = counter();
			some();
			long each = counter() - before, times = bytes / each;
			builder = type.getMethod("name", String.class).invoke(builder, getName());
			allocated = times * each;
			return (Thread) type.getMethod("unstarted", Runnable.class).invoke(builder, (Runnable) () -> {
				for (long i = 0; i < times; i++)
					some();
			});
		}
	}

	static void nodes() {
		for (int i = 0; i < 50_000; i++)
			sink = new Node();
	}

	static void strings() {
		for (int i = 0; i < 50_000; i++)
			sink = new String("kindling");
	}

	/* buffers of a size that fits into a TLAB */
	static void buffers() {
		for (int i = 0; i < 1000; i++)
			sink = new byte[2000 + 16 * (i & 127)];
	}

	/* larger than a TLAB, and for G1 larger than half a region */
	static void tables() {
		for (int i = 0; i < 4; i++)
			sink = new long[(3 << 17) + i];
	}

	/* counter() is called between the loops, and allocates little or nothing */
	static Kind[] kinds(long bytes) {
		return new Kind[] {
			new Kind("alloc-nodes", "AllocKnown$Node", bytes) {
				void some() {
					nodes();
				}
			},
			new Kind("alloc-strings", "java/lang/String", bytes) {
				void some() {
					strings();
				}
			},
			new Kind("alloc-buffers", "[B", bytes) {
				void some() {
					buffers();
				}
			},
			new Kind("alloc-tables", "[J", bytes) {
				void some() {
					tables();
				}
			},
		};
	}

	static Thread[] threads(Kind[] kinds, boolean virtual) throws Exception {
		Thread[] threads = new Thread[kinds.length];
		for (int i = 0; i < kinds.length; i++)
			threads[i] = virtual ? kinds[i].virtual() : kinds[i];
		return threads;
	}

	public static void main(String[] args) throws Exception {
		Kind.counter();
		String word = "READY";
		do {
			Kind[] kinds = kinds(Long.parseLong(args[0]) << 20);
			Thread[] threads = threads(kinds, args.length > 1);
			System.out.println(word);
			if (System.in.read() < 0)
				return;
			for (Thread t : threads)
				t.start();
			for (Thread t : threads)
				t.join();
			for (Kind k : kinds)
				System.out.println("ALLOCATED " + k.getName() + " " + k.type + " " + k.allocated);
			word = "END";
		} while (true);
	}
}
