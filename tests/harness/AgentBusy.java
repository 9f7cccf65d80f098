import java.util.TreeMap;

/** Two threads that compute all the time, and threads that use 3 ms of CPU each, one after the
 * other. */
public class AgentBusy {
	static volatile long sink;

	static int fibonacci(int n) {
		return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
	}

	static void work() {
		TreeMap<Integer, Integer> map = new TreeMap<>();

		for (int i = 0; i < 300; i++)
			map.put(i * 7919 % 1009, i);
		sink += fibonacci(22) + map.size();
	}

	static void shortLife() {
		long begin = System.nanoTime();

		while (System.nanoTime() - begin < 3_000_000)
			sink += fibonacci(10);
	}

	static void daemon(String name, Runnable body) {
		Thread t = new Thread(body, name);

		t.setDaemon(true);
		t.start();
	}

	public static void main(String[] args) throws Exception {
		for (int i = 0; i < 2; i++)
			daemon("a worker with a rather long name " + i, () -> {
				while (true)
					work();
			});
		daemon("spawner", () -> {
			try {
				while (true) {
					Thread t = new Thread(AgentBusy::shortLife, "short");
					t.start();
					t.join();
				}
			} catch (InterruptedException e) {
				return;
			}
		});
		System.out.println("ready");
		Thread.sleep(60_000);
	}
}
