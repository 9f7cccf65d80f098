import java.util.HashMap;
import java.util.Map;

/** Uses a quarter of a CPU in pieces of 5 ms, like a small service. Prints READY. */
public class Quarter {
    static int depth(int n, Map<String, Integer> map, int i) {
        return n == 0 ? map.merge("key" + i % 1000, 1, Integer::sum) : depth(n - 1, map, i) + 1;
    }

    public static void main(String[] args) throws Exception {
        Map<String, Integer> map = new HashMap<>();
        System.out.println("READY");
        for (int i = 0;; ) {
            long end = System.nanoTime() + 5_000_000;
            while (System.nanoTime() < end) depth(20 + i % 30, map, i++);
            Thread.sleep(15);
        }
    }
}
