import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.atomic.AtomicInteger;

/** Burns CPU, starts programs and ends threads all the time. A signal that reached one of those
 * programs would end it: after "end" it prints how many were started and how many had another
 * exit status than 0. */
public class Spawns {
    static volatile boolean running = true;
    static volatile long sink;

    static void burn() {
        while (running)
            for (int i = 0; i < 100_000; i++)
                sink += sink * 31 + i;
    }

    public static void main(String[] args) throws Exception {
        AtomicInteger spawned = new AtomicInteger(), bad = new AtomicInteger();
        Thread burner = new Thread(Spawns::burn, "burner");
        burner.setDaemon(true);
        burner.start();
        Thread spawner = new Thread(() -> {
            while (running) {
                try {
                    Process p = new ProcessBuilder("/bin/sh", "-c", "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done").start();
                    if (p.waitFor() != 0)
                        bad.incrementAndGet();
                    spawned.incrementAndGet();
                } catch (Exception e) {
                    bad.incrementAndGet();
                }
            }
        }, "spawner");
        spawner.start();
        System.out.println("READY");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null && !line.equals("end"); )
            ;
        running = false;
        spawner.join();
        System.out.println("END spawned=" + spawned + " bad=" + bad);
    }
}
