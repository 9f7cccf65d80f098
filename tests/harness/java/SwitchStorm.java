import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.SynchronousQueue;

/**
 * Prints READY; then PAIRS pairs of threads hand a word to and fro, which is hundreds of thousands of context switches
 * a second, until it reads a line: then only the thread "sleeper" is left, which sleeps for 20 ms at a time all along. A
 * second line ends it.
 */
public class SwitchStorm {
    static volatile boolean over;

    interface Body {
        void run() throws InterruptedException;
    }

    static void start(String name, Body body) {
        Thread t = new Thread(() -> {
            try {
                body.run();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }, name);
        t.setDaemon(true);
        t.start();
    }

    static void bounce(SynchronousQueue<String> there, SynchronousQueue<String> back) {
        start("ping", () -> {
            while (!over) {
                there.put("ping");
                back.take();
            }
        });
        start("pong", () -> {
            while (!over) {
                there.take();
                back.put("pong");
            }
        });
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < Integer.parseInt(args[0]); i++) bounce(new SynchronousQueue<>(), new SynchronousQueue<>());
        start("sleeper", () -> {
            while (true) Thread.sleep(20);
        });
        System.out.println("READY");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        in.readLine();
        over = true;
        in.readLine();
        System.out.println("END");
    }
}
