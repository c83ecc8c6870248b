import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileContent;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.Metrics;
import org.apache.iceberg.OverwriteFiles;
import org.apache.iceberg.PartitionData;
import org.apache.iceberg.PartitionField;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableScan;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.transforms.Transforms;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.SerializableFunction;

/**
 * File lists in bulk, inside the JVM.
 *
 * <p>One call across the gateway costs over a millisecond, so nothing here is per file from Python: lists stay in Java,
 * and what Python must see arrives as one string. Records are separated by newline, fields by U+001F; a field that is
 * absent is U+0000. What others wrote (paths, values, names) may hold these characters, so in there they are escaped.
 * Compiled at start-up by the Janino that Spark brings, so it keeps to Java without lambdas.
 */
public class ErrataFiles {
  private static final String FIELD = "\u001f";
  private static final String NONE = "\u0000";
  private static final String BETWEEN = "\u001e";

  /** The live data files of a snapshot that may match, with statistics and the deletes that apply to each. */
  public List scan(Table table, long snapshotId, Expression filter) throws Exception {
    TableScan scan = table.newScan().useSnapshot(snapshotId);
    scan = (TableScan) scan.filter(filter);
    scan = (TableScan) scan.includeColumnStats();
    List tasks = new ArrayList();
    CloseableIterable planned = scan.planFiles();
    try {
      for (Iterator i = planned.iterator(); i.hasNext(); ) {
        tasks.add(i.next());
      }
    } finally {
      planned.close();
    }
    return tasks;
  }

  /** One record per file: path, rows, bytes, partition value, then path/rows/content of each delete file. */
  public String describe(Table table, List tasks, int sourceId, String transform) {
    StringBuilder out = new StringBuilder();
    for (Iterator i = tasks.iterator(); i.hasNext(); ) {
      FileScanTask task = (FileScanTask) i.next();
      describe(out, table, (ContentFile) task.file(), sourceId, transform);
      for (Iterator d = task.deletes().iterator(); d.hasNext(); ) {
        DeleteFile delete = (DeleteFile) d.next();
        out.append(FIELD).append(text(delete.location())).append(FIELD).append(delete.recordCount());
        out.append(FIELD).append(delete.content().toString());
      }
      out.append("\n");
    }
    return out.toString();
  }

  /** What one commit changed: "+" or "-", then path, rows, bytes, partition value, content. */
  public String changes(Table table, long snapshotId, int sourceId, String transform) {
    Snapshot snapshot = table.snapshot(snapshotId);
    StringBuilder out = new StringBuilder();
    changes(out, "+", table, snapshot.addedDataFiles(table.io()), sourceId, transform);
    changes(out, "-", table, snapshot.removedDataFiles(table.io()), sourceId, transform);
    changes(out, "+", table, snapshot.addedDeleteFiles(table.io()), sourceId, transform);
    changes(out, "-", table, snapshot.removedDeleteFiles(table.io()), sourceId, transform);
    return out.toString();
  }

  /** Delete the listed files from the table; answers how many of them were found among the tasks. */
  public int remove(OverwriteFiles operation, List tasks, String paths) {
    List files = matching(tasks, paths);
    for (Iterator i = files.iterator(); i.hasNext(); ) {
      operation.deleteFile((DataFile) i.next());
    }
    return files.size();
  }

  /** Add the listed files to the table, as an overwrite; files of a spec that the table lacks get its current one. */
  public int add(Table table, OverwriteFiles operation, List tasks, String paths) {
    List found = pick(tasks, paths);
    for (Iterator i = found.iterator(); i.hasNext(); ) {
      FileScanTask task = (FileScanTask) i.next();
      DataFile file = (DataFile) task.file();
      boolean known = task.spec().equals(table.specs().get(Integer.valueOf(file.specId())));
      operation.addFile(known ? file : placed(file, task.spec(), table.spec()));
    }
    return found.size();
  }

  /** Those of the tasks whose files are listed. */
  public List pick(List tasks, String paths) {
    Set wanted = new HashSet(Arrays.asList(paths.split("\n")));
    List found = new ArrayList();
    for (Iterator i = tasks.iterator(); i.hasNext(); ) {
      FileScanTask task = (FileScanTask) i.next();
      if (wanted.contains(text(((DataFile) task.file()).location()))) {
        found.add(task);
      }
    }
    return found;
  }

  /** Add the listed files to a branch, as an append. */
  public int append(AppendFiles operation, List tasks, String paths) {
    List files = matching(tasks, paths);
    for (Iterator i = files.iterator(); i.hasNext(); ) {
      operation.appendFile((DataFile) i.next());
    }
    return files.size();
  }

  /** One record per snapshot the table still knows: id, parent, operation, timestamp, and the summary as k=v fields. */
  public String snapshots(Table table) {
    StringBuilder out = new StringBuilder();
    for (Iterator i = table.snapshots().iterator(); i.hasNext(); ) {
      Snapshot snapshot = (Snapshot) i.next();
      out.append(snapshot.snapshotId()).append(FIELD);
      out.append(snapshot.parentId() == null ? NONE : snapshot.parentId().toString()).append(FIELD);
      out.append(snapshot.operation() == null ? "" : text(snapshot.operation())).append(FIELD).append(snapshot.timestampMillis());
      for (Iterator e = snapshot.summary().entrySet().iterator(); e.hasNext(); ) {
        java.util.Map.Entry entry = (java.util.Map.Entry) e.next();
        out.append(FIELD).append(text(entry.getKey())).append("=").append(text(entry.getValue()));
      }
      out.append("\n");
    }
    return out.toString();
  }

  /** One record per column of the current schema: field id, name, type. */
  public String columns(Table table) {
    StringBuilder out = new StringBuilder();
    for (Iterator i = table.schema().columns().iterator(); i.hasNext(); ) {
      Types.NestedField field = (Types.NestedField) i.next();
      out.append(field.fieldId()).append(FIELD).append(text(field.name())).append(FIELD);
      out.append(text(field.type()));
      out.append("\n");
    }
    return out.toString();
  }

  /** Paths of the data files that any snapshot of the table still reads. */
  public Set paths(Table table) throws Exception {
    Set manifests = new HashSet();
    Set paths = new HashSet();
    for (Iterator i = table.snapshots().iterator(); i.hasNext(); ) {
      for (Iterator m = ((Snapshot) i.next()).dataManifests(table.io()).iterator(); m.hasNext(); ) {
        ManifestFile manifest = (ManifestFile) m.next();
        if (manifests.add(manifest.path())) {
          CloseableIterable files = ManifestFiles.read(manifest, table.io(), table.specs());
          try {
            for (Iterator f = files.iterator(); f.hasNext(); ) {
              paths.add(((DataFile) f.next()).location());
            }
          } finally {
            files.close();
          }
        }
      }
    }
    return paths;
  }

  /** Delete the files of one set that are not in the other; answers how many. */
  public int deleteUnused(FileIO io, Set owned, Set used) {
    Set unused = new HashSet(owned);
    unused.removeAll(used);
    CatalogUtil.deleteFiles(io, unused, "data", true);
    return unused.size();
  }

  private static void changes(StringBuilder out, String sign, Table table, Iterable files, int sourceId, String transform) {
    for (Iterator i = files.iterator(); i.hasNext(); ) {
      ContentFile file = (ContentFile) i.next();
      out.append(sign).append(FIELD);
      describe(out, table, file, sourceId, transform);
      out.append(FIELD).append(file.content().toString()).append("\n");
    }
  }

  private static void describe(StringBuilder out, Table table, ContentFile file, int sourceId, String transform) {
    out.append(text(file.location())).append(FIELD).append(file.recordCount()).append(FIELD).append(file.fileSizeInBytes());
    out.append(FIELD);
    PartitionSpec spec = (PartitionSpec) table.specs().get(Integer.valueOf(file.specId()));
    int position = position(spec, sourceId, transform);
    if (position < 0) {
      within(out, table, file, sourceId, transform);
      return;
    }
    Object value = file.partition().get(position, Object.class);
    if (value == null) {
      out.append(NONE);
    } else {
      out.append("=").append(text(value));
    }
  }

  /**
   * The partition of a file whose spec does not tell, by the bounds of the column: one value when all rows are in it,
   * else "?", "n" when some may be NULL, and the first and the last value; "?" alone when there are no bounds.
   */
  private static void within(StringBuilder out, Table table, ContentFile file, int sourceId, String transform) {
    Integer id = Integer.valueOf(sourceId);
    Long nulls = count(file.nullValueCounts(), id);
    Long values = count(file.valueCounts(), id);
    ByteBuffer low = bound(file.lowerBounds(), id);
    ByteBuffer high = bound(file.upperBounds(), id);
    if (file.content() != FileContent.DATA) {
      out.append("?");
    } else if (nulls != null && nulls.equals(values)) {
      out.append(NONE);
    } else if (low == null || high == null) {
      out.append("?");
    } else {
      Type type = table.schema().findType(sourceId);
      SerializableFunction of = Transforms.fromString(type, transform).bind(type);
      String first = text(of.apply(Conversions.fromByteBuffer(type, low)));
      String last = text(of.apply(Conversions.fromByteBuffer(type, high)));
      boolean none = nulls != null && nulls.longValue() == 0L;
      if (none && first.equals(last)) {
        out.append("=").append(first);
      } else if (first.indexOf(BETWEEN) >= 0 || last.indexOf(BETWEEN) >= 0) {
        out.append("?");
      } else {
        out.append("?").append(none ? "-" : "n").append(first).append(BETWEEN).append(last);
      }
    }
  }

  private static Long count(Map counts, Integer id) {
    return counts == null ? null : (Long) counts.get(id);
  }

  private static ByteBuffer bound(Map bounds, Integer id) {
    return bounds == null ? null : (ByteBuffer) bounds.get(id);
  }

  /** A file as one of another spec, each field of which is a field of its own. */
  private static DataFile placed(DataFile file, PartitionSpec own, PartitionSpec spec) {
    Metrics metrics = new Metrics(
        Long.valueOf(file.recordCount()), file.columnSizes(), file.valueCounts(), file.nullValueCounts(),
        file.nanValueCounts(), file.lowerBounds(), file.upperBounds());
    DataFiles.Builder made = DataFiles.builder(spec).withPath(file.location()).withFormat(file.format());
    made = made.withFileSizeInBytes(file.fileSizeInBytes()).withMetrics(metrics).withSplitOffsets(file.splitOffsets());
    if (file.sortOrderId() != null) {
      made = made.withSortOrderId(file.sortOrderId().intValue());
    }
    if (spec.isPartitioned()) {
      PartitionData place = new PartitionData(spec.partitionType());
      for (int n = 0; n < spec.fields().size(); n += 1) {
        int at = indexOf(own, ((PartitionField) spec.fields().get(n)).fieldId());
        place.put(n, file.partition().get(at, Object.class));
      }
      made = made.withPartition(place);
    }
    return made.build();
  }

  private static int indexOf(PartitionSpec spec, int fieldId) {
    for (int n = 0; n < spec.fields().size(); n += 1) {
      if (((PartitionField) spec.fields().get(n)).fieldId() == fieldId) {
        return n;
      }
    }
    throw new IllegalStateException("partition field " + fieldId + " is not one of " + spec);
  }

  private static int position(PartitionSpec spec, int sourceId, String transform) {
    List fields = spec.fields();
    for (int n = 0; n < fields.size(); n += 1) {
      PartitionField field = (PartitionField) fields.get(n);
      if (field.sourceId() == sourceId && field.transform().toString().equals(transform)) {
        return n;
      }
    }
    return -1;
  }

  /** Text of others, in which nothing separates records or fields. */
  private static String text(Object value) {
    String text = String.valueOf(value);
    if (text.indexOf(92) < 0 && text.indexOf(10) < 0 && text.indexOf(31) < 0 && text.indexOf(0) < 0) {
      return text;
    }
    StringBuilder out = new StringBuilder();
    for (int n = 0; n < text.length(); n += 1) {
      char sign = text.charAt(n);
      if (sign == 92) {
        out.append("\\\\");
      } else if (sign == 10) {
        out.append("\\n");
      } else if (sign == 31) {
        out.append("\\f");
      } else if (sign == 0) {
        out.append("\\0");
      } else {
        out.append(sign);
      }
    }
    return out.toString();
  }

  private List matching(List tasks, String paths) {
    List files = new ArrayList();
    for (Iterator i = pick(tasks, paths).iterator(); i.hasNext(); ) {
      files.add(((FileScanTask) i.next()).file());
    }
    return files;
  }
}
