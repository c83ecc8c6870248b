import java.util.Collection;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Set;

import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.BaseTransaction;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFiles;
import org.apache.iceberg.ManageSnapshots;
import org.apache.iceberg.OverwriteFiles;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.SnapshotUpdate;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.UpdateSchema;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.spark.FileRewriteCoordinator;
import org.apache.iceberg.types.Types;

/**
 * One metadata version of a table, and the one commit that may follow it.
 *
 * <p>Steps are collected in a transaction on that version; {@link #swap} asks the catalog once to replace the version by
 * the result. Iceberg's own {@code commitTransaction()} is never called: told of a conflict it tries again, and when the
 * conflict is with its own landed commit (an answer of 503 that the client repeats, a request that a gateway sends
 * twice) it ends by deleting the manifest list of the snapshot that readers see.
 *
 * <p>Everything is done in here because the gateway keeps each object that Python has called until Python collects its
 * cycles; after {@link #close} nothing but an empty shell is kept.
 */
public class ErrataCommit {
  private Table table;
  private BaseTransaction transaction;
  private SnapshotUpdate pending;
  private String branch;
  private Set forgotten = new HashSet();

  public ErrataCommit(Table table) {
    // newTransaction() refreshes what the handle reads from, so it comes first
    this.transaction = (BaseTransaction) table.newTransaction();
    this.table = table;
  }

  /** The handle to read this version by; it is never refreshed. */
  public Table table() {
    return table;
  }

  public void createBranch(String name, long snapshotId) {
    manage().createBranch(name, snapshotId).commit();
  }

  public void replaceBranch(String name, long snapshotId) {
    manage().replaceBranch(name, snapshotId).commit();
  }

  public void createTag(String name, long snapshotId) {
    manage().createTag(name, snapshotId).commit();
  }

  /** Remove a branch or a tag. */
  public void removeRef(String name) {
    SnapshotRef ref = (SnapshotRef) table.refs().get(name);
    ManageSnapshots manage = manage();
    (ref.isBranch() ? manage.removeBranch(name) : manage.removeTag(name)).commit();
  }

  /** How long a ref lives, counted by Iceberg from the timestamp of its snapshot. */
  public void setAge(String ref, long milliseconds) {
    manage().setMaxRefAgeMs(ref, milliseconds).commit();
  }

  /** How long every snapshot of a branch lives, not only its head. */
  public void setSnapshotAge(String name, long milliseconds) {
    manage().setMaxSnapshotAgeMs(name, milliseconds).commit();
  }

  /** Leave a snapshot out of the metadata; its files stay. */
  public void forget(long snapshotId) {
    forgotten.add(Long.valueOf(snapshotId));
  }

  /** A branch whose head lists no file and has no parent; answers the head. */
  public long emptyRoot(String name) {
    if (table.currentSnapshot() != null) {
      DeleteFiles everything = transaction.newDelete().deleteFromRowFilter(Expressions.alwaysTrue());
      everything.toBranch(name);
      everything.commit();
    }
    // not a fast append: that would keep the manifests of what was deleted
    start(transaction.newAppend(), name);
    long head = finish();
    Long parent = made(head).parentId();
    if (parent != null) {
      forget(parent.longValue());
    }
    return head;
  }

  public void addColumn(String name, String type) {
    UpdateSchema update = transaction.updateSchema();
    update.addColumn(name, Types.fromPrimitiveString(type)).commit();
  }

  /** The table as it will be, to read its schema. */
  public Table result() {
    return transaction.table();
  }

  /** Begin to append files to a branch; to main when it is null. */
  public void startAppend(String name) {
    start(transaction.newFastAppend(), name);
  }

  /** Begin to replace files of a branch; of main when it is null. */
  public void startOverwrite(String name) {
    start(transaction.newOverwrite(), name);
  }

  /** Take out the listed files of a snapshot; answers how many of them were found. */
  public int remove(long snapshotId, String scope, String paths) throws Exception {
    Collection files = ErrataFiles.files(table, snapshotId, scope, paths);
    for (Iterator i = files.iterator(); i.hasNext(); ) {
      ((OverwriteFiles) pending).deleteFile((DataFile) i.next());
    }
    return files.size();
  }

  /** Put in the listed files of a snapshot, with statistics; answers how many of them were found. */
  public int add(Table holder, long snapshotId, String scope, String paths) throws Exception {
    Collection files = ErrataFiles.placedFiles(table, holder, snapshotId, scope, paths);
    put(files);
    return files.size();
  }

  /** Put in the files that Spark has written under a name; see {@link ErrataFiles#openWrite}. */
  public int addWritten(String name) {
    Collection files = FileRewriteCoordinator.get().fetchNewFiles(table, name);
    put(files);
    return files.size();
  }

  private void put(Collection files) {
    for (Iterator i = files.iterator(); i.hasNext(); ) {
      DataFile file = (DataFile) i.next();
      if (pending instanceof OverwriteFiles) {
        ((OverwriteFiles) pending).addFile(file);
      } else {
        ((AppendFiles) pending).appendFile(file);
      }
    }
  }

  /** A property in the summary of the snapshot that is being made. */
  public void set(String key, String value) {
    pending.set(key, value);
  }

  /** End what was begun; answers the new snapshot. Nothing is asked of the catalog yet. */
  public long finish() {
    pending.commit();
    pending = null;
    return ((SnapshotRef) transaction.currentMetadata().refs().get(branch)).snapshotId();
  }

  /** The one compare-and-swap. Whatever it throws, only the table knows what happened. */
  public void swap() {
    TableMetadata result = transaction.currentMetadata();
    if (!forgotten.isEmpty()) {
      result = TableMetadata.buildFrom(result).removeSnapshots(forgotten).build();
    }
    transaction.underlyingOps().commit(transaction.startMetadata(), result);
  }

  /** Let go of the table and of every file list; the object is of no use afterwards. */
  public void close() {
    table = null;
    transaction = null;
    pending = null;
  }

  private ManageSnapshots manage() {
    return transaction.manageSnapshots();
  }

  private void start(SnapshotUpdate operation, String name) {
    branch = name == null ? SnapshotRef.MAIN_BRANCH : name;
    pending = operation;
    if (name != null) {
      pending.toBranch(name);
    }
  }

  private Snapshot made(long snapshotId) {
    return transaction.currentMetadata().snapshot(snapshotId);
  }
}
