import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * Prints READY; then four threads "courier" wait in next() for up to 10 ms at a time for a parcel that never comes, in a
 * loop that no profiler can know, and the thread "clerk" waits likewise in reply(). It ends when it reads a line.
 */
public class Couriers {
    private final LinkedBlockingQueue<String> parcels = new LinkedBlockingQueue<>();

    String next() throws InterruptedException {
        return parcels.poll(10, TimeUnit.MILLISECONDS);
    }

    String reply() throws InterruptedException {
        return parcels.poll(10, TimeUnit.MILLISECONDS);
    }

    interface Wait {
        String once() throws InterruptedException;
    }

    static void loop(String name, Wait wait) {
        Thread thread = new Thread(() -> {
            try {
                while (wait.once() == null) { }
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
    }

    public static void main(String[] args) throws Exception {
        Couriers couriers = new Couriers();
        for (int i = 0; i < 4; i++) loop("courier", couriers::next);
        loop("clerk", couriers::reply);
        System.out.println("READY");
        System.in.read();
    }
}
