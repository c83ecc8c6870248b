import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.Metrics;
import org.apache.iceberg.PartitionData;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;

/** Tables of many files that exist in metadata only, and what the JVM's heap held. */
public class ManyFiles {
  /** This many columns: a day, then text and numbers in turn. */
  public Schema schema(int columns) {
    List fields = new ArrayList();
    fields.add(Types.NestedField.optional(1, "day", Types.DateType.get()));
    for (int n = 2; n <= columns; n += 1) {
      Type type = n % 2 == 0 ? (Type) Types.StringType.get() : (Type) Types.LongType.get();
      fields.add(Types.NestedField.optional(n, "c" + n, type));
    }
    return new Schema(fields);
  }

  /** Add files from one number to another; days have a fixed distance and number of files. */
  public void fill(Table table, AppendFiles append, String prefix, int first, int end, int perDay, int apart) {
    for (int n = first; n < end; n += 1) {
      int day = 1000 + n / perDay * apart;
      PartitionData place = new PartitionData(table.spec().partitionType());
      place.put(0, Integer.valueOf(day));
      String path = table.location() + "/data/" + prefix + "-" + n + "-00000-0000000000000000.parquet";
      DataFiles.Builder file = DataFiles.builder(table.spec()).withPath(path).withFormat(FileFormat.PARQUET);
      append.appendFile(
          file.withFileSizeInBytes(1000000L).withMetrics(metrics(table, day, n)).withPartition(place).build());
    }
  }

  private static Metrics metrics(Table table, int day, int n) {
    Map sizes = new HashMap();
    Map values = new HashMap();
    Map nulls = new HashMap();
    Map lower = new HashMap();
    Map upper = new HashMap();
    for (int id = 1; id <= table.schema().columns().size(); id += 1) {
      Integer key = Integer.valueOf(id);
      Type type = table.schema().findType(id);
      boolean text = id % 2 == 0;
      sizes.put(key, Long.valueOf(1000L + id));
      values.put(key, Long.valueOf(5000L));
      nulls.put(key, Long.valueOf(id == 1 ? 0L : 3L));
      Object low = id == 1 ? (Object) Integer.valueOf(day) : text ? (Object) ("aaaaaaaaaaaa" + n) : (Object) Long.valueOf(n);
      Object high = id == 1 ? (Object) Integer.valueOf(day) : text ? (Object) ("zzzzzzzzzzzz" + n) : (Object) Long.valueOf(n + 100000L);
      lower.put(key, Conversions.toByteBuffer(type, low));
      upper.put(key, Conversions.toByteBuffer(type, high));
    }
    return new Metrics(Long.valueOf(5000L), sizes, values, nulls, null, lower, upper);
  }

  /** Forget what the heap held so far. */
  public void reset() {
    System.gc();
    for (Iterator i = ManagementFactory.getMemoryPoolMXBeans().iterator(); i.hasNext(); ) {
      ((MemoryPoolMXBean) i.next()).resetPeakUsage();
    }
  }

  /** The most that the heap's pools have held since, in MB. */
  public long peak() {
    long sum = 0;
    for (Iterator i = ManagementFactory.getMemoryPoolMXBeans().iterator(); i.hasNext(); ) {
      MemoryPoolMXBean pool = (MemoryPoolMXBean) i.next();
      if (pool.getType() == MemoryType.HEAP) {
        sum += pool.getPeakUsage().getUsed();
      }
    }
    return sum / 1048576L;
  }
}
