import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * Is this a call that the program can make? CallGraph PATH... reads the class files of the JDK it runs on and of the
 * directories and jars named, then lines "caller-class method line callee-class method" on stdin. At an empty line it
 * answers each of those before with a word: "ok", "WRONG" where no instruction of the caller on that line can have led
 * to the callee, or why it cannot say: invokedynamic or method handles on the line, a native caller, what the VM itself
 * calls, a class that is in no file. Virtual calls may go to any class that shares a subtype with the one named.
 */
public class CallGraph {
    static class Call {
        String owner, name; // null: invokedynamic
        int line;
    }

    static class Method {
        boolean isNative;
        List<Call> calls = new ArrayList<>();
    }

    static class Type {
        String parent;
        List<String> interfaces = new ArrayList<>(), children = new ArrayList<>();
        byte[] bytes; // until its code was read
        Path path;
        Map<String, List<Method>> methods;
    }

    static final String VERSIONS = "META-INF/versions/";
    static final Map<String, Type> types = new HashMap<>();
    // methods that HotSpot calls by itself, from any frame in which it needs them
    static final Set<String> UPCALLS = new HashSet<>();

    static {
        for (String s : new String[] {"java/lang/ClassLoader.loadClass", "java/lang/ClassLoader.checkPackageAccess",
            "java/lang/ref/Finalizer.register", "java/lang/Thread.dispatchUncaughtException", "java/lang/Thread.exit"})
            UPCALLS.add(s);
    }

    // ---- class files -------------------------------------------------------------------------------------

    static class Constants {
        final String[] text;
        final int[] first, second;

        Constants(DataInputStream in) throws IOException {
            int n = in.readUnsignedShort();
            text = new String[n];
            first = new int[n];
            second = new int[n];
            for (int i = 1; i < n; i++) {
                int tag = in.readUnsignedByte();
                if (tag == 1) {
                    text[i] = in.readUTF();
                } else if (tag == 5 || tag == 6) {
                    in.readLong();
                    i++;
                } else if (tag == 3 || tag == 4) {
                    in.readInt();
                } else if (tag == 15) {
                    in.readUnsignedByte();
                    in.readUnsignedShort();
                } else {
                    first[i] = in.readUnsignedShort();
                    if (tag >= 9 && tag <= 12 || tag == 17 || tag == 18) second[i] = in.readUnsignedShort();
                }
            }
        }

        String name(int i) { // of a class
            return i == 0 ? null : text[first[i]];
        }

        Call call(int i) {
            Call c = new Call();
            c.owner = name(first[i]);
            c.name = text[first[second[i]]];
            return c;
        }
    }

    /** The beginning of a class file, and its methods if they are needed. */
    static String read(byte[] bytes, Type t, boolean code) throws IOException {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
        if (in.readInt() != 0xcafebabe) return null;
        in.readInt();
        Constants constants = new Constants(in);
        in.readUnsignedShort();
        String name = constants.name(in.readUnsignedShort());
        t.parent = constants.name(in.readUnsignedShort());
        t.interfaces.clear();
        for (int n = in.readUnsignedShort(); n > 0; n--) t.interfaces.add(constants.name(in.readUnsignedShort()));
        if (!code) return name;
        t.methods = new HashMap<>();
        for (int n = in.readUnsignedShort(); n > 0; n--) member(in, constants, null);
        for (int n = in.readUnsignedShort(); n > 0; n--) member(in, constants, t.methods);
        return name;
    }

    static void member(DataInputStream in, Constants constants, Map<String, List<Method>> methods) throws IOException {
        Method m = new Method();
        m.isNative = (in.readUnsignedShort() & 0x100) != 0;
        String name = constants.text[in.readUnsignedShort()];
        in.readUnsignedShort();
        if (methods != null) methods.computeIfAbsent(name, k -> new ArrayList<>()).add(m);
        for (int n = in.readUnsignedShort(); n > 0; n--) {
            boolean code = "Code".equals(constants.text[in.readUnsignedShort()]);
            byte[] attribute = new byte[in.readInt()];
            in.readFully(attribute);
            if (code && methods != null) code(attribute, constants, m);
        }
    }

    static void code(byte[] attribute, Constants constants, Method m) throws IOException {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(attribute));
        in.readInt();
        byte[] code = new byte[in.readInt()];
        in.readFully(code);
        in.skipBytes(8 * in.readUnsignedShort());
        int[] lines = new int[code.length];
        java.util.Arrays.fill(lines, -1);
        for (int n = in.readUnsignedShort(); n > 0; n--) {
            boolean table = "LineNumberTable".equals(constants.text[in.readUnsignedShort()]);
            int length = in.readInt();
            if (!table) {
                in.skipBytes(length);
                continue;
            }
            for (int k = in.readUnsignedShort(); k > 0; k--) {
                int at = in.readUnsignedShort();
                lines[at] = in.readUnsignedShort();
            }
        }
        int line = -1;
        for (int at = 0; at < code.length;) {
            int length = length(code, at);
            if (lines[at] >= 0) line = lines[at];
            int op = code[at] & 0xff;
            if (op >= 182 && op <= 186) {
                int i = (code[at + 1] & 0xff) << 8 | code[at + 2] & 0xff;
                Call c = op == 186 ? new Call() : constants.call(i);
                c.line = line;
                m.calls.add(c);
            }
            at += length;
        }
    }

    static int word(byte[] code, int at) {
        return (code[at] & 0xff) << 24 | (code[at + 1] & 0xff) << 16 | (code[at + 2] & 0xff) << 8 | code[at + 3] & 0xff;
    }

    static int length(byte[] code, int at) {
        int op = code[at] & 0xff, aligned = (at + 4) & ~3;
        if (op == 170) return aligned + 12 + 4 * (word(code, aligned + 8) - word(code, aligned + 4) + 1) - at;
        if (op == 171) return aligned + 8 + 8 * word(code, aligned + 4) - at;
        if (op == 196) return (code[at + 1] & 0xff) == 132 ? 6 : 4;
        if (op == 16 || op == 18 || op >= 21 && op <= 25 || op >= 54 && op <= 58 || op == 169 || op == 188) return 2;
        if (op == 17 || op == 19 || op == 20 || op == 132 || op >= 153 && op <= 168 || op >= 178 && op <= 184 || op == 187
            || op == 189 || op == 192 || op == 193 || op == 198 || op == 199) return 3;
        if (op == 197) return 4;
        return op == 185 || op == 186 || op == 200 || op == 201 ? 5 : 1;
    }

    // ---- all classes -------------------------------------------------------------------------------------

    static void add(byte[] bytes, Path path) throws IOException {
        Type t = new Type();
        String name = read(bytes, t, false);
        if (name == null) return;
        t.path = path;
        t.bytes = path == null ? bytes : null;
        types.put(name, t);
    }

    static void addTree(Path root) throws IOException {
        try (Stream<Path> walk = Files.walk(root)) {
            for (Path p : walk.filter(f -> f.toString().endsWith(".class")).collect(Collectors.toList())) add(Files.readAllBytes(p), p);
        }
    }

    /** The version of a class (META-INF/versions/N) that this JDK would load: the highest comes
     * last. */
    static int release(ZipEntry e) {
        return e.getName().startsWith(VERSIONS) ? Integer.parseInt(e.getName().substring(VERSIONS.length()).split("/")[0]) : 0;
    }

    static void addJar(String path) throws IOException {
        String specification = System.getProperty("java.specification.version");
        int ours = specification.startsWith("1.") ? 8 : Integer.parseInt(specification);
        try (ZipFile zip = new ZipFile(path)) {
            List<ZipEntry> all = zip.stream().filter(e -> e.getName().endsWith(".class") && release(e) <= ours)
                .sorted(Comparator.comparingInt(CallGraph::release)).collect(Collectors.toList());
            for (ZipEntry e : all) {
                byte[] bytes = new byte[(int) e.getSize()];
                new DataInputStream(zip.getInputStream(e)).readFully(bytes);
                add(bytes, null);
            }
        }
    }

    static void addJdk() throws IOException {
        String jars = System.getProperty("sun.boot.class.path"); // JDK 8
        if (jars == null) addTree(FileSystems.getFileSystem(URI.create("jrt:/")).getPath("/modules"));
        for (String jar : jars == null ? new String[0] : jars.split(File.pathSeparator))
            if (new File(jar).isFile()) addJar(jar);
    }

    static void link() {
        types.forEach((name, t) -> {
            List<String> above = new ArrayList<>(t.interfaces);
            if (t.parent != null) above.add(t.parent);
            for (String s : above)
                if (types.containsKey(s)) types.get(s).children.add(name);
        });
    }

    static final Map<String, Set<String>> aboveOf = new HashMap<>();

    static Set<String> above(String name) {
        Set<String> known = aboveOf.get(name);
        if (known != null) return known;
        Set<String> all = new HashSet<>();
        all.add(name);
        all.add("java/lang/Object");
        Type t = types.get(name);
        if (t != null && t.parent != null) all.addAll(above(t.parent));
        if (t != null)
            for (String s : t.interfaces) all.addAll(above(s));
        aboveOf.put(name, all);
        return all;
    }

    /** Is there a class that is a subtype of both? Then a call of a method of @owner may run a
     * method of @callee. */
    static boolean meet(String owner, String callee) {
        if (owner.startsWith("[")) return callee.equals("java/lang/Object");
        if (above(owner).contains(callee)) return true;
        Set<String> seen = new HashSet<>();
        Deque<String> todo = new ArrayDeque<>();
        todo.add(owner);
        while (!todo.isEmpty()) {
            String s = todo.pop();
            if (!seen.add(s)) continue;
            if (above(s).contains(callee)) return true;
            if (types.containsKey(s)) todo.addAll(types.get(s).children);
        }
        return false;
    }

    // ---- the question ------------------------------------------------------------------------------------

    static boolean polymorphic(Call c) {
        return c.owner.equals("java/lang/invoke/MethodHandle") || c.owner.equals("java/lang/invoke/VarHandle");
    }

    static String verdict(String caller, String method, int line, String callee, String name) throws IOException {
        Type t = types.get(caller);
        if (t == null || !types.containsKey(callee)) return "unknown-class";
        if (t.methods == null) read(t.bytes != null ? t.bytes : Files.readAllBytes(t.path), t, true);
        List<Method> all = t.methods.get(method);
        if (all == null) return "WRONG";
        boolean handles = false, isNative = false;
        for (Method m : all) {
            isNative |= m.isNative;
            for (Call c : m.calls) {
                if (line >= 0 && c.line >= 0 && c.line != line) continue;
                if (c.owner == null || polymorphic(c)) handles = true;
                else if (c.name.equals(name) && meet(c.owner, callee)) return "ok";
            }
        }
        if (handles) return "method-handle";
        if (isNative) return "native-caller";
        boolean thrown = name.equals("<init>") && above(callee).contains("java/lang/Throwable");
        boolean linked = callee.equals("java/lang/invoke/MethodHandleNatives") && name.startsWith("link");
        return name.equals("<clinit>") || thrown || linked || UPCALLS.contains(callee + "." + name)
            || name.equals("loadClass") ? "upcall" : "WRONG";
    }

    public static void main(String[] args) throws Exception {
        addJdk();
        for (String path : args) {
            if (new File(path).isFile()) addJar(path);
            else addTree(Paths.get(path));
        }
        link();
        StringBuilder answers = new StringBuilder();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String text; (text = in.readLine()) != null;) {
            if (text.isEmpty()) {
                System.out.print(answers);
                System.out.flush();
                answers.setLength(0);
                continue;
            }
            String[] w = text.split(" ");
            answers.append(verdict(w[0], w[1], Integer.parseInt(w[2]), w[3], w[4])).append('\n');
        }
    }
}
