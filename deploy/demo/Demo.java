import java.util.Random;
import java.util.TreeMap;

/** A small shop that is always busy, as an example for a first flame graph. */
public class Demo {
    static volatile long sold;

    static double price(Random random, int depth) {
        return depth == 0 ? random.nextDouble() : Math.sqrt(price(random, depth - 1) + depth);
    }

    static void fillShelf(Random random, TreeMap<String, Double> shelf) {
        for (int i = 0; i < 200; i++)
            shelf.put("article-" + random.nextInt(5000), price(random, 12));
    }

    static void sell(Random random, TreeMap<String, Double> shelf) {
        double sum = 0;
        for (int i = 0; i < 2000 && !shelf.isEmpty(); i++) {
            String key = shelf.ceilingKey("article-" + random.nextInt(5000));
            if (key != null) sum += shelf.get(key);
        }
        sold += (long) sum;
    }

    public static void main(String[] args) {
        for (int i = 0; i < 2; i++) {
            int seed = i;
            new Thread(() -> {
                Random random = new Random(seed);
                TreeMap<String, Double> shelf = new TreeMap<>();
                while (true) {
                    fillShelf(random, shelf);
                    sell(random, shelf);
                    if (shelf.size() > 4000) shelf.clear();
                    try { Thread.sleep(5); } catch (InterruptedException e) { return; }
                }
            }, "cashier-" + i).start();
        }
    }
}
