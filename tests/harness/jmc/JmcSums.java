import java.io.File;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.openjdk.jmc.common.IMCFrame;
import org.openjdk.jmc.common.IMCStackTrace;
import org.openjdk.jmc.common.item.IAccessorKey;
import org.openjdk.jmc.common.item.IItem;
import org.openjdk.jmc.common.item.IItemIterable;
import org.openjdk.jmc.common.item.IMemberAccessor;
import org.openjdk.jmc.common.unit.IQuantity;
import org.openjdk.jmc.common.unit.IUnit;
import org.openjdk.jmc.common.unit.UnitLookup;
import org.openjdk.jmc.flightrecorder.JfrAttributes;
import org.openjdk.jmc.flightrecorder.JfrLoaderToolkit;

/**
 * What JDK Mission Control's parser makes of a recording: JmcSums FILE. For each type of event COUNT type n, SUM type
 * field sum (of times in ns), METHOD type name n, in how many of its events that method is on the stack, and of
 * kindling's own types VALUE type field text n, in how many a reason or an id is that text.
 */
public class JmcSums {
    static final Map<String, Long> lines = new TreeMap<>();

    static void add(String line, long n) {
        lines.merge(line, n, Long::sum);
    }

    static final Set<String> WORDS = Set.of("reason", "traceId", "spanId");

    /** The value of a quantity, or of a number without a unit. */
    static void addValue(String line, Object value) {
        if (value instanceof IQuantity quantity) {
            IUnit unit = quantity.getType().equals(UnitLookup.TIMESPAN) ? UnitLookup.NANOSECOND : quantity.getUnit();
            if (!quantity.getType().equals(UnitLookup.TIMESTAMP)) add(line, quantity.clampedLongValueIn(unit));
        } else if (value instanceof Number number) {
            add(line, number.longValue());
        }
    }

    static void stack(String type, IMCStackTrace stack) {
        if (stack == null) return;
        stack.getFrames().stream().map(IMCFrame::getMethod).filter(m -> m != null)
            .map(m -> (m.getType() == null ? "" : m.getType().getFullName() + ".") + m.getMethodName())
            .distinct().forEach(name -> add("METHOD " + type + " " + name, 1));
    }

    static void events(IItemIterable events) {
        String type = events.getType().getIdentifier();
        add("COUNT " + type, events.getItemCount());
        for (IAccessorKey<?> key : events.getType().getAccessorKeys().keySet()) {
            IMemberAccessor<?, IItem> field = events.getType().getAccessor(key);
            for (IItem event : events) {
                Object value = field.getMember(event);
                addValue("SUM " + type + " " + key.getIdentifier(), value);
                if (value instanceof String && type.startsWith("kindling.") && WORDS.contains(key.getIdentifier()))
                    add("VALUE " + type + " " + key.getIdentifier() + " " + value, 1);
            }
        }
        IMemberAccessor<IMCStackTrace, IItem> stack = JfrAttributes.EVENT_STACKTRACE.getAccessor(events.getType());
        if (stack == null) return;
        for (IItem event : events) stack(type, stack.getMember(event));
    }

    public static void main(String[] args) throws Exception {
        for (IItemIterable events : JfrLoaderToolkit.loadEvents(new File(args[0]))) events(events);
        lines.forEach((line, n) -> System.out.println(line + " " + n));
    }
}
