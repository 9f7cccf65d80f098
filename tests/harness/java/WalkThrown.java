/** Methods that the VM calls, and that end by an exception. */
public class WalkThrown extends ClassLoader {
    static final ClassNotFoundException NONE = new ClassNotFoundException("none", null);

    @Override
    public Class<?> loadClass(String name) throws ClassNotFoundException {
        throw NONE;
    }

    static int found;

    static void look(ClassLoader loader) {
        try {
            Class.forName("none", false, loader);
            found++;
        } catch (ClassNotFoundException e) {
            if (e != NONE) found++;
        }
    }

    public static void main(String[] args) {
        ClassLoader loader = new WalkThrown();
        System.out.println("READY");
        new Thread(() -> {
            for (;;) look(loader);
        }).start();
    }
}
