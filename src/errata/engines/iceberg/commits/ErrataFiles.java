import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;

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
import org.apache.iceberg.PartitionData;
import org.apache.iceberg.PartitionField;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SortOrder;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableScan;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.spark.FileRewriteCoordinator;
import org.apache.iceberg.spark.ScanTaskSetManager;
import org.apache.iceberg.spark.SparkTableCache;
import org.apache.iceberg.transforms.Transform;
import org.apache.iceberg.transforms.Transforms;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.SerializableFunction;
import org.apache.iceberg.util.SnapshotUtil;

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

  /**
   * The live data files of a snapshot in the scope: path, rows, bytes, partition value, then path, rows and content of
   * each delete file. Files whose partition is known and not among the wanted values are left out; no wanted values:
   * none is. Nothing but the answer is kept.
   */
  public String live(Table table, long snapshotId, String scope, int sourceId, String transform, String wanted)
      throws Exception {
    Set values = wanted.isEmpty() ? null : new HashSet(Arrays.asList(wanted.split("\n")));
    StringBuilder out = new StringBuilder();
    CloseableIterable planned = plan(table, snapshotId, scope, Collections.singleton(Integer.valueOf(sourceId)));
    try {
      for (Iterator i = planned.iterator(); i.hasNext(); ) {
        FileScanTask task = (FileScanTask) i.next();
        ContentFile file = (ContentFile) task.file();
        String value = value(table, file, sourceId, transform);
        if (values != null && !value.startsWith("?") && !values.contains(value)) {
          continue;
        }
        describe(out, file, value);
        for (Iterator d = task.deletes().iterator(); d.hasNext(); ) {
          DeleteFile delete = (DeleteFile) d.next();
          out.append(FIELD).append(text(delete.location())).append(FIELD).append(delete.recordCount());
          out.append(FIELD).append(delete.content().toString());
        }
        out.append("\n");
      }
    } finally {
      planned.close();
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

  /**
   * Delete files that commits after a base brought: snapshot, content, then path, rows, bytes, partition value.
   *
   * <p>The base is the first of the snapshots, empty for a table that had none. Where the parents of main's head do not
   * reach it: those at the head with a later sequence number than the base; than the earliest of the other snapshots
   * when the base is gone. Rewrites bring no deletes: Iceberg's keep the sequence number, others are known by operation.
   */
  public String newDeletes(Table table, String snapshots, int sourceId, String transform) throws Exception {
    StringBuilder out = new StringBuilder();
    Snapshot head = table.currentSnapshot();
    String[] ids = snapshots.split("\n", -1);
    Long base = ids[0].isEmpty() ? null : Long.valueOf(ids[0]);
    List since = new ArrayList();
    Snapshot at = head;
    while (at != null && !Long.valueOf(at.snapshotId()).equals(base) && at.parentId() != null) {
      since.add(at);
      at = table.snapshot(at.parentId().longValue());
    }
    boolean isRoot = at != null && base == null && isFirst(at);
    if (isRoot) {
      since.add(at);
    }
    if (head != null && !isRoot && (at == null || !Long.valueOf(at.snapshotId()).equals(base))) {
      laterDeletes(out, table, head, sequenceNumber(table, ids), sourceId, transform);
      return out.toString();
    }
    for (Iterator i = since.iterator(); i.hasNext(); ) {
      Snapshot snapshot = (Snapshot) i.next();
      boolean mayHave = snapshot.summary().get("added-delete-files") != null || snapshot.summary().get("total-delete-files") == null;
      if (mayHave && !"replace".equals(snapshot.operation())) {
        for (Iterator d = snapshot.addedDeleteFiles(table.io()).iterator(); d.hasNext(); ) {
          newDelete(out, table, String.valueOf(snapshot.snapshotId()), (DeleteFile) d.next(), sourceId, transform);
        }
      }
    }
    return out.toString();
  }

  /** Whether a table begins with this snapshot: as errata.model.table.is_first_snapshot says. */
  private static boolean isFirst(Snapshot snapshot) {
    Map counts = snapshot.summary();
    return snapshot.parentId() == null && addsAll(counts, "data-files") && addsAll(counts, "delete-files")
        && isZero(counts.get("deleted-data-files")) && isZero(counts.get("removed-delete-files"));
  }

  private static boolean addsAll(Map counts, String kind) {
    Object total = counts.get("total-" + kind);
    Object added = counts.get("added-" + kind);
    return total != null && total.equals(added == null ? "0" : added);
  }

  private static boolean isZero(Object count) {
    return count == null || "0".equals(count);
  }

  /** Begin one commit on the newest version of a table. */
  public ErrataCommit begin(Table table) {
    return new ErrataCommit(table);
  }

  /** Stage the scan of the listed files, with their deletes, for Spark to read under a name. */
  public void stage(Table table, String name, long snapshotId, String scope, String paths) throws Exception {
    SparkTableCache.get().add(name, table);
    ScanTaskSetManager.get().stageTasks(table, name, tasks(table, snapshotId, scope, paths, null));
  }

  /** Let go of what {@link #stage} staged. */
  public void unstage(Table table, String name) {
    ScanTaskSetManager.get().removeTasks(table, name);
    SparkTableCache.get().remove(name);
  }

  /** Let Spark write files of this table under a name, without committing them. */
  public void openWrite(Table table, String name) {
    SparkTableCache.get().add(name, table);
  }

  /** Let go of a name and of the list of its files; the files stay. */
  public void closeWrite(Table table, String name) {
    FileRewriteCoordinator.get().clearRewrite(table, name);
    SparkTableCache.get().remove(name);
  }

  /**
   * A scope as a predicate: the field id of the column, then a line each: "n" for NULL, else how values are written, the
   * first value and the last; "*" for every row.
   *
   * <p>A balanced tree, because one that leans to a side overflows the stack at some thousand ranges; ranges and never
   * {@code in}, which Iceberg 1.11.0 answers on text beside a NULL partition with a NullPointerException, and which finds
   * no file at all of a transform.
   */
  private static Expression filter(Schema schema, String scope) {
    if (scope.equals("*")) {
      return Expressions.alwaysTrue();
    }
    List found = new ArrayList();
    String[] lines = scope.split("\n");
    String column = schema.findColumnName(Integer.parseInt(lines[0]));
    for (int n = 1; n < lines.length; n += 1) {
      String[] range = lines[n].split(FIELD, -1);
      if (range[0].equals("n")) {
        found.add(Expressions.isNull(column));
      } else {
        boolean number = range[0].equals("#");
        Expression from = from(column, meant(range[1]), number);
        found.add(Expressions.and(from, to(column, meant(range[2]), number)));
      }
    }
    return either(found, 0, found.size());
  }

  private static Expression from(String column, String value, boolean number) {
    return number
        ? (Expression) Expressions.greaterThanOrEqual(column, Long.valueOf(value))
        : (Expression) Expressions.greaterThanOrEqual(column, value);
  }

  private static Expression to(String column, String value, boolean number) {
    return number
        ? (Expression) Expressions.lessThanOrEqual(column, Long.valueOf(value))
        : (Expression) Expressions.lessThanOrEqual(column, value);
  }

  private static Expression either(List parts, int first, int end) {
    if (end - first == 0) {
      return Expressions.alwaysFalse();
    }
    if (end - first == 1) {
      return (Expression) parts.get(first);
    }
    int middle = (first + end) / 2;
    return Expressions.or(either(parts, first, middle), either(parts, middle, end));
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

  /** One record per column of a schema that the table has had: field id, name, and what files without it read as. */
  public String schema(Table table, int schemaId) {
    StringBuilder out = new StringBuilder();
    Schema schema = (Schema) table.schemas().get(Integer.valueOf(schemaId));
    for (Iterator i = schema == null ? new ArrayList().iterator() : schema.columns().iterator(); i.hasNext(); ) {
      Types.NestedField field = (Types.NestedField) i.next();
      Transform identity = Transforms.identity();
      Object value = field.initialDefault();
      out.append(field.fieldId()).append(FIELD).append(text(field.name())).append(FIELD);
      out.append(value == null ? NONE : text(identity.toHumanString(field.type(), value))).append("\n");
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

  private static void laterDeletes(
      StringBuilder out, Table table, Snapshot head, long after, int sourceId, String transform) throws Exception {
    Map commits = new HashMap();
    for (Iterator i = table.snapshots().iterator(); i.hasNext(); ) {
      Snapshot snapshot = (Snapshot) i.next();
      commits.put(Long.valueOf(snapshot.sequenceNumber()), snapshot);
    }
    for (Iterator m = head.deleteManifests(table.io()).iterator(); m.hasNext(); ) {
      ManifestFile manifest = (ManifestFile) m.next();
      if (manifest.sequenceNumber() <= after) {
        continue;
      }
      CloseableIterable files = ManifestFiles.readDeleteManifest(manifest, table.io(), table.specs());
      try {
        for (Iterator f = files.iterator(); f.hasNext(); ) {
          DeleteFile file = (DeleteFile) f.next();
          Snapshot commit = (Snapshot) commits.get(file.dataSequenceNumber());
          boolean isRewrite = commit != null && "replace".equals(commit.operation());
          if (file.dataSequenceNumber().longValue() > after && !isRewrite) {
            newDelete(out, table, commit == null ? NONE : String.valueOf(commit.snapshotId()), file, sourceId, transform);
          }
        }
      } finally {
        files.close();
      }
    }
  }

  /** Of the first snapshot, or when it is gone the least of the others; below all others when all are gone. */
  private static long sequenceNumber(Table table, String[] ids) {
    long least = -1L;
    for (int n = 0; n < ids.length; n += 1) {
      Snapshot snapshot = ids[n].isEmpty() ? null : table.snapshot(Long.parseLong(ids[n]));
      if (snapshot != null) {
        least = least < 0L ? snapshot.sequenceNumber() : Math.min(least, snapshot.sequenceNumber());
        if (n == 0) {
          return least;
        }
      }
    }
    return least;
  }

  private static void newDelete(
      StringBuilder out, Table table, String snapshot, DeleteFile file, int sourceId, String transform) {
    out.append(snapshot).append(FIELD).append(file.content().toString()).append(FIELD);
    describe(out, (ContentFile) file, value(table, (ContentFile) file, sourceId, transform));
    out.append("\n");
  }

  private static void changes(StringBuilder out, String sign, Table table, Iterable files, int sourceId, String transform) {
    for (Iterator i = files.iterator(); i.hasNext(); ) {
      ContentFile file = (ContentFile) i.next();
      out.append(sign).append(FIELD);
      describe(out, file, value(table, file, sourceId, transform));
      out.append(FIELD).append(file.content().toString()).append("\n");
    }
  }

  private static void describe(StringBuilder out, ContentFile file, String value) {
    out.append(text(file.location())).append(FIELD).append(file.recordCount()).append(FIELD).append(file.fileSizeInBytes());
    out.append(FIELD).append(value);
  }

  /** The partition value of a file: "=" and the value, U+0000 for NULL, or what {@link #within} says. */
  private static String value(Table table, ContentFile file, int sourceId, String transform) {
    PartitionSpec spec = (PartitionSpec) table.specs().get(Integer.valueOf(file.specId()));
    int position = position(spec, sourceId, transform);
    if (position < 0) {
      return within(table, file, sourceId, transform);
    }
    Object value = file.partition().get(position, Object.class);
    return value == null ? NONE : "=" + text(value);
  }

  /**
   * The partition of a file whose spec does not tell, by the bounds of the column: one value when all rows are in it,
   * else "?", "n" when some may be NULL, and the first and the last value; "?" alone when there are no bounds. Bounds of
   * a delete file are about the rows it deletes only where the column is one of those that its rows are told apart by.
   */
  private static String within(Table table, ContentFile file, int sourceId, String transform) {
    Integer id = Integer.valueOf(sourceId);
    Long nulls = count(file.nullValueCounts(), id);
    Long values = count(file.valueCounts(), id);
    ByteBuffer low = bound(file.lowerBounds(), id);
    ByteBuffer high = bound(file.upperBounds(), id);
    boolean tells = file.content() == FileContent.DATA
        || (file.content() == FileContent.EQUALITY_DELETES && file.equalityFieldIds().contains(id));
    if (!tells) {
      return "?";
    }
    if (nulls != null && nulls.equals(values)) {
      return NONE;
    }
    if (low == null || high == null) {
      return "?";
    }
    Type type = table.schema().findType(sourceId);
    SerializableFunction of = Transforms.fromString(type, transform).bind(type);
    String first = text(of.apply(Conversions.fromByteBuffer(type, low)));
    String last = text(of.apply(Conversions.fromByteBuffer(type, high)));
    boolean none = nulls != null && nulls.longValue() == 0L;
    if (none && first.equals(last)) {
      return "=" + first;
    }
    if (first.indexOf(BETWEEN) >= 0 || last.indexOf(BETWEEN) >= 0) {
      return "?";
    }
    return "?" + (none ? "-" : "n") + first + BETWEEN + last;
  }

  private static Long count(Map counts, Integer id) {
    return counts == null ? null : (Long) counts.get(id);
  }

  private static ByteBuffer bound(Map bounds, Integer id) {
    return bounds == null ? null : (ByteBuffer) bounds.get(id);
  }

  /** A file as one of the table's spec now, each field of which is a field of its own. */
  private static DataFile placed(DataFile file, PartitionSpec own, Table table) {
    PartitionSpec spec = table.spec();
    Metrics metrics = new Metrics(
        Long.valueOf(file.recordCount()), file.columnSizes(), file.valueCounts(), file.nullValueCounts(),
        file.nanValueCounts(), file.lowerBounds(), file.upperBounds());
    DataFiles.Builder made = DataFiles.builder(spec).withPath(file.location()).withFormat(file.format());
    made = made.withFileSizeInBytes(file.fileSizeInBytes()).withMetrics(metrics).withSplitOffsets(file.splitOffsets());
    // by the order itself: a builder that takes its id is new in Iceberg 1.11
    SortOrder order = file.sortOrderId() == null ? null : (SortOrder) table.sortOrders().get(file.sortOrderId());
    if (order != null) {
      made = made.withSortOrder(order);
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

  /** The reverse of {@link #text}. */
  private static String meant(String text) {
    if (text.indexOf(92) < 0) {
      return text;
    }
    StringBuilder out = new StringBuilder();
    for (int n = 0; n < text.length(); n += 1) {
      char sign = text.charAt(n);
      if (sign != 92) {
        out.append(sign);
        continue;
      }
      n += 1;
      char letter = text.charAt(n);
      out.append(letter == 'n' ? (char) 10 : letter == 'f' ? (char) 31 : letter == '0' ? (char) 0 : letter);
    }
    return out.toString();
  }

  /** The listed files of a snapshot, to be taken out: without statistics, which nothing needs of them any more. */
  static List files(Table table, long snapshotId, String scope, String paths) throws Exception {
    List files = new ArrayList();
    List found = tasks(table, snapshotId, scope, paths, Collections.emptySet());
    for (Iterator i = found.iterator(); i.hasNext(); ) {
      files.add(((FileScanTask) i.next()).file());
    }
    return files;
  }

  /** The listed files of a holder's snapshot as files of a table; those of a spec it lacks get its current one. */
  static List placedFiles(Table table, Table holder, long snapshotId, String scope, String paths) throws Exception {
    List files = new ArrayList();
    for (Iterator i = tasks(holder, snapshotId, scope, paths, null).iterator(); i.hasNext(); ) {
      FileScanTask task = (FileScanTask) i.next();
      DataFile file = (DataFile) task.file();
      boolean known = task.spec().equals(table.specs().get(Integer.valueOf(file.specId())));
      files.add(known ? file : placed(file, task.spec(), table));
    }
    return files;
  }

  /** Scan tasks of the listed files; statistics of these fields, of all when null. */
  private static List tasks(Table table, long snapshotId, String scope, String paths, Collection fields)
      throws Exception {
    Set wanted = new HashSet(Arrays.asList(paths.split("\n")));
    List found = new ArrayList();
    CloseableIterable planned = plan(table, snapshotId, scope, fields);
    try {
      for (Iterator i = planned.iterator(); i.hasNext(); ) {
        FileScanTask task = (FileScanTask) i.next();
        if (wanted.contains(text(((DataFile) task.file()).location()))) {
          found.add(task);
        }
      }
    } finally {
      planned.close();
    }
    return found;
  }

  /** Plan a scan with statistics of these fields; of all when null. An older snapshot is scanned by its own schema's names. */
  private static CloseableIterable plan(Table table, long snapshotId, String scope, Collection fields) {
    // Iceberg binds partition specs to the snapshot's own schema, but at main's head to the table's current one
    boolean isHead = table.currentSnapshot() != null && table.currentSnapshot().snapshotId() == snapshotId;
    Schema schema = isHead ? table.schema() : SnapshotUtil.schemaFor(table, snapshotId);
    TableScan scan = isHead ? table.newScan() : (TableScan) table.newScan().useSnapshot(snapshotId);
    scan = (TableScan) scan.filter(filter(schema, scope));
    if (fields == null) {
      return ((TableScan) scan.includeColumnStats()).planFiles();
    }
    Set columns = new HashSet();
    for (Iterator i = fields.iterator(); i.hasNext(); ) {
      String column = schema.findColumnName(((Integer) i.next()).intValue());
      if (column != null) {
        columns.add(column);
      }
    }
    return (columns.isEmpty() ? scan : (TableScan) scan.includeColumnStats(columns)).planFiles();
  }
}
