import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * WalkHazard for profilers that share a JVM: WalkNeighbours LIBRARY. "look" on stdin is answered by one line,
 * the handlers' addresses by number of the signal; "end" ends it.
 */
public class WalkNeighbours {
    static native long handler(int signo);

    static void answer() {
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in))) {
            for (String word; (word = in.readLine()) != null;) {
                if (word.equals("end")) WalkHazard.end = System.nanoTime();
                if (!word.equals("look")) continue;
                StringBuilder line = new StringBuilder("LOOK");
                for (int signo : new int[] {4, 7, 8, 11, 16, 26, 27, 30}) line.append(' ').append(signo).append('=').append(handler(signo));
                System.out.println(line);
            }
        } catch (Exception e) {
            e.printStackTrace();
        }
    }

    public static void main(String[] args) throws Exception {
        System.load(args[0]);
        Thread t = new Thread(WalkNeighbours::answer, "answer");
        t.setDaemon(true);
        t.start();
        WalkHazard.main(new String[] {"120"});
    }
}
