import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

/** Code on which stack walks tend to fail: stubs, intrinsics, prologues, megamorphic calls,
 * exceptions, deoptimisation. */
public class WalkMix {
    static volatile long sink;

    public interface Shape {
        int area(int x);
    }

    static class A implements Shape {
        public int area(int x) {
            return x * 3;
        }
    }

    static class B implements Shape {
        public int area(int x) {
            return x + 7;
        }
    }

    static class C extends B {
        public int area(int x) {
            return super.area(x) ^ 5;
        }
    }

    static class D implements Shape {
        public synchronized int area(int x) {
            return x - 1;
        }
    }

    /** Loaded late: compiled code that relied on Shape having only four implementations is
     * discarded. */
    public static class Late implements Shape {
        public int area(int x) {
            return x << 1;
        }
    }

    static class Loader extends ClassLoader {
        Class<?> define(byte[] b) {
            return defineClass(null, b, 0, b.length);
        }
    }

    static int recursion(int depth) {
        return depth == 0 ? 1 : recursion(depth - 1) + 1;
    }

    static void megamorphic() {
        Shape[] shapes = {new A(), new B(), new C(), new D()};
        int sum = 0;
        for (int i = 0; i < 20000; i++) sum += shapes[i & 3].area(i);
        sink += sum;
    }

    static void strings(Random random) {
        StringBuilder builder = new StringBuilder();
        for (int i = 0; i < 300; i++) builder.append("key").append(random.nextInt(1000)).append(',');
        String s = builder.toString();
        sink += s.indexOf("999,") + s.hashCode() + s.replace("key", "K").length();
        for (String part : s.split(",")) sink += part.compareTo("key5") + (part.equals("key77") ? 1 : 0);
    }

    static void trees(Random random) {
        TreeMap<String, Integer> tree = new TreeMap<>();
        for (int i = 0; i < 400; i++) tree.put("k" + random.nextInt(500), i);
        for (Map.Entry<String, Integer> e : tree.entrySet()) sink += e.getValue();
    }

    static void streams() {
        List<Integer> numbers = IntStream.range(0, 500).boxed().collect(Collectors.toList());
        sink += numbers.stream().filter(n -> n % 3 == 0).mapToInt(n -> square(n)).sum();
        Map<Integer, List<Integer>> groups = numbers.stream().collect(Collectors.groupingBy(n -> n % 7));
        sink += groups.size();
    }

    static int square(int n) {
        return n * n;
    }

    static int thrower(int depth) {
        if (depth == 0) throw new IllegalStateException("thrown");
        try {
            return thrower(depth - 1) + 1;
        } finally {
            sink++;
        }
    }

    static void exceptions() {
        for (int i = 0; i < 50; i++) {
            try {
                thrower(i % 20);
            } catch (IllegalStateException e) {
                sink += e.getMessage().length();
            }
        }
    }

    static void natives(byte[] data) throws Exception {
        CRC32 crc = new CRC32();
        crc.update(data);
        MessageDigest sha = MessageDigest.getInstance("SHA-256");
        Deflater deflater = new Deflater();
        byte[] out = new byte[data.length];
        deflater.setInput(data);
        deflater.finish();
        sink += deflater.deflate(out) + crc.getValue() + sha.digest(data)[0];
        deflater.end();
        System.arraycopy(data, 0, out, 7, data.length - 7);
        sink += Arrays.hashCode(out);
    }

    static void sorting(Random random) {
        Integer[] values = new Integer[2000];
        for (int i = 0; i < values.length; i++) values[i] = random.nextInt();
        Arrays.sort(values, (x, y) -> y.compareTo(x));
        sink += values[0];
    }

    static void types(Object[] objects) {
        Object[] copy = new Object[objects.length];
        for (int i = 0; i < 3000; i++) {
            Object o = objects[i % objects.length];
            if (o instanceof Comparable && o instanceof CharSequence) sink++;
            copy[i % copy.length] = o;
        }
        System.arraycopy(copy, 0, new Object[copy.length], 0, copy.length);
    }

    static void reflection(Method method, MethodHandle handle) throws Throwable {
        for (int i = 0; i < 200; i++) {
            sink += (Integer) method.invoke(null, i);
            sink += (int) handle.invokeExact(i);
        }
    }

    static void deoptimise(byte[] late) throws Exception {
        Shape shape = (Shape) new Loader().define(late).getDeclaredConstructor().newInstance();
        for (int i = 0; i < 3000; i++) sink += shape.area(i);
    }

    static void locks(Object lock) {
        for (int i = 0; i < 500; i++) {
            synchronized (lock) {
                sink++;
            }
        }
    }

    static void allocate() {
        List<byte[]> list = new ArrayList<>();
        for (int i = 0; i < 300; i++) list.add(new byte[i * 8]);
        Map<Object, Object> map = new HashMap<>();
        for (byte[] b : list) map.put(b.length, b.clone());
        sink += map.size();
    }

    static void round(Random random, Method method, MethodHandle handle, byte[] late, Object lock) throws Throwable {
        megamorphic();
        strings(random);
        trees(random);
        streams();
        exceptions();
        natives(new byte[8192]);
        sorting(random);
        types(new Object[] {"a", 1, 2L, 'c', new Object(), new StringBuilder("x")});
        reflection(method, handle);
        for (int i = 0; i < 100; i++) sink += recursion(200);
        locks(lock);
        allocate();
        sink += Pattern.compile("(k[0-9]+)*x").matcher("k1k22k333k4444y").find() ? 1 : 0;
        if (random.nextInt(20) == 0) deoptimise(late);
    }

    static void work(int seed) {
        try {
            Random random = new Random(seed);
            Method method = WalkMix.class.getDeclaredMethod("square", int.class);
            MethodHandle handle = MethodHandles.lookup().findStatic(WalkMix.class, "square",
                MethodType.methodType(int.class, int.class));
            byte[] late = late();
            for (;;) round(random, method, handle, late, WalkMix.class);
        } catch (Throwable t) {
            t.printStackTrace();
            System.exit(1);
        }
    }

    static byte[] late() throws Exception {
        java.io.InputStream in = WalkMix.class.getResourceAsStream("WalkMix$Late.class");
        byte[] buffer = new byte[10000];
        int n = 0;
        for (int r; (r = in.read(buffer, n, buffer.length - n)) > 0; n += r) {
        }
        in.close();
        return Arrays.copyOf(buffer, n);
    }

    public static void main(String[] args) {
        System.out.println("READY");
        for (int i = 0; i < 3; i++) {
            int seed = i;
            new Thread(() -> work(seed), "mix-" + i).start();
        }
    }
}
