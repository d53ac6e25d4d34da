package io.metalake.spark

import java.net.URLEncoder
import java.util
import java.util.concurrent.ConcurrentHashMap

import scala.collection.JavaConverters._

import org.apache.iceberg.catalog.Catalog
import org.apache.iceberg.exceptions.{NoSuchTableException => NoTable}
import org.apache.iceberg.rest.{ErrorHandler, ErrorHandlers, HTTPClient, RESTClient, RESTResponse}
import org.apache.iceberg.rest.auth.AuthManagers
import org.apache.iceberg.rest.responses.ErrorResponse
import org.apache.iceberg.spark.{RollbackStagedTable, SparkCatalog}
import org.apache.iceberg.spark.source.SparkView
import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{NoSuchDatabaseException, NoSuchNamespaceException, NoSuchTableException}
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType, ExternalCatalog}
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Tables of a Hive or Glue catalog by one name: Iceberg's by Iceberg's catalog, all others by Hive's.
  *
  * It is Iceberg's own catalog with another one beside it, which `mixed.hive` names: `kyuubi`, `session` or `none`.
  * Which of the two has a table is what its entry in the metastore says, asked when the table is named; a table of
  * Iceberg is remembered, so that the question costs one request for each. See docs/engines/spark-mixed.md.
  */
class MixedCatalog extends SparkCatalog with CatalogExtension {
  import Formats._
  import MixedCatalog._

  private var ownName = ""
  private var options = CaseInsensitiveStringMap.empty()
  private var delegate: Option[TableCatalog] = None
  private val ofIceberg: util.Set[Identifier] = ConcurrentHashMap.newKeySet[Identifier]()

  private val ofHive: util.Set[Identifier] = ConcurrentHashMap.newKeySet[Identifier]()
  private lazy val mode = options.getOrDefault("mixed.hive", "none")

  /** Hive's tables, if they can be reached from here. */
  private lazy val hive: Option[TableCatalog] = mode match {
    case "none" => None
    case "kyuubi" => Some(kyuubi)
    case "session" => Some(ofSession)
    case other => throw new IllegalArgumentException(s"mixed.hive of $ownName is $other, not kyuubi, session or none")
  }

  /** Spark's own catalog, which it gives to the catalog that is set in the place of it. */
  override def setDelegateCatalog(own: CatalogPlugin): Unit = delegate = Some(own.asInstanceOf[TableCatalog])

  private def ofSession: TableCatalog = delegate.getOrElse {
    val manager = call(call(SparkSession.active, "sessionState"), "catalogManager")
    call(manager, "catalog", Session) match {
      case mixed: MixedCatalog => mixed.ofSession
      case own: TableCatalog => own
    }
  }

  private lazy val entries: ExternalCatalog = {
    val owner = if (mode == "kyuubi") hive.get else call(call(SparkSession.active, "sessionState"), "catalog")
    call(owner, "externalCatalog").asInstanceOf[ExternalCatalog]
  }

  /** Metalake's native wire, with the login of Iceberg's. */
  private lazy val metalake: RESTClient = {
    val iceberg = HTTPClient.builder(options).uri(options.get("uri")).build()
    val login = AuthManagers.loadAuthManager(ownName, options).catalogSession(iceberg, options)
    HTTPClient.builder(options).uri(options.get("mixed.tables")).build().withAuthSession(login)
  }

  /** The one step of Iceberg's `initialize`, which is final, that is given all settings. */
  override protected def buildIcebergCatalog(name: String, settings: CaseInsensitiveStringMap): Catalog = {
    ownName = name
    options = settings
    super.buildIcebergCatalog(name, settings)
  }

  /** Spark plans Hive's own tables for the session's catalog alone, which it knows by its name. */
  override def name(): String = if (mode == "session") Session else super.name()

  // -- Which catalog has a table

  /** The table as Hive's catalog has it; None for a table of Iceberg, a view, or what the metastore does not know. */
  private def inHive(ident: Identifier): Option[Table] =
    if (ofIceberg.contains(ident) || (!ofHive.contains(ident) && !entryFor(ident).exists(isHiveTable(ident, _)))) None
    else
      try hive.map(_.loadTable(ident)).filter(table => entryOf(table).forall(isHiveTable(ident, _)))
      catch { case _: NoSuchTableException | _: NoSuchNamespaceException => None }

  /** Whether an entry is neither of Iceberg nor a view; remembers what is of which, and forgets what was. */
  private def isHiveTable(ident: Identifier, entry: CatalogTable): Boolean = {
    val isHive = !isIceberg(entry) && !isView(entry)
    if (isIceberg(entry)) ofIceberg.add(ident)
    if (isHive) ofHive.add(ident) else ofHive.remove(ident)
    isHive
  }

  /** The entry of the metastore, in one request, where Hive's catalogs ask several times. */
  private def entryFor(ident: Identifier): Option[CatalogTable] =
    try hive.filter(_ => ident.namespace.length == 1).map(_ => entries.getTable(ident.namespace.head, ident.name))
    catch { case _: NoSuchTableException | _: NoSuchDatabaseException => None }

  /** What a name is that Iceberg's catalog has no table for: another format's by now, refused, or missing. */
  private def notOfIceberg(ident: Identifier, missing: NoSuchTableException): Table =
    if (hive.isEmpty && inMetalake(ident)) refuse(ident, whyNotHere)
    else if (!ofIceberg.remove(ident)) throw missing
    else // the metastore is asked anew
      inHive(ident) match {
        case Some(table) => readable(ident, table)
        case None if ofIceberg.contains(ident) => refuse(ident, HIDDEN)
        case None => throw missing
      }

  /** Whether Metalake knows a table of this name, of whatever format, that the caller may load. */
  private def inMetalake(ident: Identifier): Boolean = options.containsKey("mixed.tables") && {
    val path = s"schemas/${encoded(ident.namespace.mkString(":"))}/tables/${encoded(ident.name)}"
    try {
      metalake.get(path, classOf[Anything], Map.empty[String, String].asJava, ByStatus)
      true
    } catch { case _: NoTable => false }
  }

  /** The table, or the reason why it cannot be read here: a table is never read as another format than its own. */
  private def readable(ident: Identifier, table: Table): Table = entryOf(table).fold(table) { entry =>
    val format = formatOf(entry)
    if (Jars.contains(format))
      sourceOf(format) match {
        case Some(provider) => provider.getTable(table.schema, table.partitioning, pathOf(entry))
        case None if lacksJar(format) => refuse(ident, s"it is a table of $format, and ${Jars(format)}")
        case None if mode == "session" => table
        case None => refuse(ident, s"it is a table of $format, which is read with mixed.hive=session alone")
      }
    else if (format == "hive" && entry.storage.inputFormat.isEmpty) refuse(ident, "its entry names no format")
    else if (mode == "kyuubi" && !KyuubiReads(format))
      refuse(ident, s"it is a table of Spark's source $format, which Kyuubi's connector cannot read")
    else table
  }

  override def loadTable(ident: Identifier): Table = inHive(ident) match {
    case Some(table) => readable(ident, table)
    case None =>
      try super.loadTable(ident)
      catch { case missing: NoSuchTableException => notOfIceberg(ident, missing) }
  }

  override def loadTable(ident: Identifier, version: String): Table = past(ident, super.loadTable(ident, version))

  override def loadTable(ident: Identifier, timestamp: Long): Table = past(ident, super.loadTable(ident, timestamp))

  private def past(ident: Identifier, load: => Table): Table =
    if (inHive(ident).isDefined) refuse(ident, "it is not a table of Iceberg, so it has no earlier versions") else load

  override def tableExists(ident: Identifier): Boolean =
    inHive(ident).isDefined || super.tableExists(ident) || (hive.isEmpty && inMetalake(ident))

  override def listTables(namespace: Array[String]): Array[Identifier] = {
    val others =
      try hive.filter(_ => namespace.length == 1).fold(Array.empty[Identifier])(_.listTables(namespace))
      catch { case _: NoSuchNamespaceException => Array.empty[Identifier] }
    (others ++ super.listTables(namespace)).distinct
  }

  override def invalidateTable(ident: Identifier): Unit = {
    ofIceberg.remove(ident)
    ofHive.remove(ident)
    hive.foreach(_.invalidateTable(ident))
    super.invalidateTable(ident)
  }

  /** Hive's own view, whose tables are looked up in this catalog, or else one of Iceberg as Metalake has it. */
  override def loadView(ident: Identifier): View =
    entryFor(ident).filter(entry => isView(entry) && entry.viewText.isDefined && !isIcebergView(entry)) match {
      case None => readable(ident, super.loadView(ident))
      case Some(entry) =>
        otherDialect(entry).foreach(engine => refuse(ident, s"it is a view in the SQL of $engine, $ONLY"))
        new HiveView(ownName, ident, entry)
    }

  /** The view, unless it has SQL of other engines alone, of which Iceberg would give Spark the first. */
  private def readable(ident: Identifier, view: View): View = view match {
    case ofIceberg: SparkView =>
      val dialect = ofIceberg.view.sqlFor("spark").dialect
      if (dialect.equalsIgnoreCase("spark")) view
      else refuse(ident, s"it is a view in the SQL of ${dialect.toLowerCase.capitalize}, $DIALECT")
    case _ => view
  }

  // -- Changes

  override def alterTable(ident: Identifier, changes: TableChange*): Table =
    if (inHive(ident).isEmpty) super.alterTable(ident, changes: _*)
    else if (mode == "kyuubi" && changes.exists(_.isInstanceOf[TableChange.ColumnChange])) refuse(ident, COLUMNS)
    else hive.get.alterTable(ident, changes: _*)

  override def renameTable(from: Identifier, to: Identifier): Unit = {
    val target = if (to.namespace.headOption.contains(ownName)) Identifier.of(to.namespace.tail, to.name) else to
    if (inHive(from).isDefined) hive.get.renameTable(from, target)
    else {
      ofIceberg.remove(from)
      super.renameTable(from, target)
    }
  }

  override def dropTable(ident: Identifier): Boolean = dropped(ident, purge = false)

  override def purgeTable(ident: Identifier): Boolean = dropped(ident, purge = true)

  private def dropped(ident: Identifier, purge: Boolean): Boolean =
    if (inHive(ident).isDefined) if (purge) hive.get.purgeTable(ident) else hive.get.dropTable(ident)
    else {
      ofIceberg.remove(ident)
      val gone = if (purge) super.purgeTable(ident) else super.dropTable(ident)
      if (!gone && hive.isEmpty && inMetalake(ident)) refuse(ident, whyNotHere)
      gone
    }

  override def createTable(ident: Identifier, columns: Columns, parts: Parts, properties: Properties): Table =
    if (makesIceberg(ident, properties)) super.createTable(ident, columns, parts, properties)
    else {
      val format = properties.get(TableCatalog.PROP_PROVIDER).toLowerCase
      if (hive.isEmpty) refuse(ident, whyNotHere)
      if (lacksJar(format)) refuse(ident, s"it would be a table of $format, and ${Jars(format)}")
      if (mode == "kyuubi" && !KyuubiReads(format)) refuse(ident, s"Kyuubi's connector makes no tables of $format")
      hive.get.createTable(ident, columns, parts, properties)
    }

  override def stageCreate(ident: Identifier, columns: Columns, parts: Parts, properties: Properties): StagedTable =
    if (makesIceberg(ident, properties)) super.stageCreate(ident, columns, parts, properties)
    else new RollbackStagedTable(this, ident, createTable(ident, columns, parts, properties))

  override def stageReplace(ident: Identifier, columns: Columns, parts: Parts, properties: Properties): StagedTable =
    if (makesIceberg(ident, properties)) super.stageReplace(ident, columns, parts, properties)
    else refuse(ident, REPLACED)

  override def stageCreateOrReplace(ident: Identifier, columns: Columns, parts: Parts, own: Properties): StagedTable =
    if (makesIceberg(ident, own)) super.stageCreateOrReplace(ident, columns, parts, own)
    else refuse(ident, REPLACED)

  /** Whether a new table is one of Iceberg; what only Hive has is not left out of one without a word. */
  private def makesIceberg(ident: Identifier, properties: Properties): Boolean =
    if (OfHive.exists(properties.containsKey)) refuse(ident, if (hive.isEmpty) s"$STORED$whyNotHere" else STORED + USING)
    else properties.getOrDefault(TableCatalog.PROP_PROVIDER, "iceberg").equalsIgnoreCase("iceberg")

  private def kyuubi: TableCatalog = {
    if (SparkSession.active.conf.get("spark.sql.catalogImplementation") != "hive")
      throw new UnsupportedOperationException(s"$ownName needs a session with spark.sql.catalogImplementation=hive")
    if (!KyuubiSparks.contains(SPARK_VERSION))
      throw new UnsupportedOperationException(s"$ownName needs Spark 3.5.0 to 3.5.4: $KyuubiJar reads nothing later")
    val own = options.asCaseSensitiveMap.asScala.collect {
      case (key, value) if key.toLowerCase.startsWith(KyuubiKeys) => key.substring(KyuubiKeys.length) -> value
    }
    val catalog =
      try Class.forName(Kyuubi, true, Thread.currentThread.getContextClassLoader).getConstructor().newInstance()
      catch {
        case _: ClassNotFoundException =>
          throw new UnsupportedOperationException(s"$ownName needs the jar $KyuubiJar, which is not there")
      }
    val tables = catalog.asInstanceOf[TableCatalog]
    tables.initialize(ownName, new CaseInsensitiveStringMap(own.toMap.asJava))
    tables
  }

  private def whyNotHere = options.getOrDefault("mixed.message", "it is not a table of Iceberg")

  private def refuse(ident: Identifier, why: String): Nothing = {
    val full = (ownName +: ident.namespace.toSeq :+ ident.name).mkString(".")
    throw new UnsupportedOperationException(s"$full cannot be used here: $why")
  }
}

object MixedCatalog {
  type Columns = Array[Column]
  type Parts = Array[Transform]
  type Properties = util.Map[String, String]
  val Session = "spark_catalog"
  val Kyuubi = "org.apache.kyuubi.spark.connector.hive.HiveTableCatalog"
  val KyuubiJar = "org.apache.kyuubi:kyuubi-spark-connector-hive_2.12:1.9.0"
  val KyuubiKeys = "mixed.kyuubi."
  val KyuubiReads = Set("hive", "orc", "parquet")
  val KyuubiSparks: Seq[String] = (0 to 4).map(patch => s"3.5.$patch") // what it calls of Spark is another in 3.5.5
  val COLUMNS = "Kyuubi's connector would leave the columns as they are; alter them through Metalake"
  val HIDDEN = "it is a table of Iceberg in the metastore, and Metalake does not show it to you"
  val ONLY = "which is its only query: make one for Spark beside it, under another name"
  val DIALECT = "and has none that Spark reads: `gcli view add-dialect` adds one"
  /** What Spark makes of STORED AS and ROW FORMAT. */
  val OfHive = Seq("hive.stored-as", "hive.input-format", "hive.serde", "option.field.delim")
  val STORED = "STORED AS and ROW FORMAT are of tables of Hive (USING iceberg makes one of Iceberg): "
  val USING = "write USING hive OPTIONS (fileFormat 'parquet'), say"
  val REPLACED = "only a table of Iceberg is replaced in one step; drop it and create it anew"
  /** A view as Hive's metastore keeps it, from Spark or from Hive. */
  class HiveView(catalog: String, ident: Identifier, entry: CatalogTable) extends View {
    private val home = entry.viewCatalogAndNamespace
    override def name(): String = (catalog +: ident.namespace.toSeq :+ ident.name).mkString(".")
    override def query(): String = entry.viewText.get
    override def currentCatalog(): String = home.headOption.filter(_ != Session).getOrElse(catalog)
    override def currentNamespace(): Array[String] = if (home.size > 1) home.tail.toArray else ident.namespace
    override def schema(): StructType = entry.schema
    override def queryColumnNames(): Array[String] = entry.viewQueryColumnNames.toArray
    override def columnAliases(): Array[String] = entry.schema.fieldNames
    override def columnComments(): Array[String] = entry.schema.fields.map(_.getComment().orNull)
    override def properties(): util.Map[String, String] = entry.properties.asJava
  }

  /** The engine that wrote a view in SQL of its own; docs/decisions/hive-views.md has the marks. */
  def otherDialect(entry: CatalogTable): Option[String] =
    if (entry.properties.get("presto_view").exists(_.equalsIgnoreCase("true"))) Some("Trino")
    else if (entry.properties.keys.exists(_.startsWith("flink.schema."))) Some("Flink")
    else if (entry.properties.get("is_generic").exists(_.equalsIgnoreCase("true"))) Some("Flink")
    else None

  /** The native wire words its errors in its own way, and their status says enough here. */
  object ByStatus extends ErrorHandler {
    override def parseResponse(code: Int, json: String): ErrorResponse =
      ErrorResponse.builder().responseCode(code).withType("").withMessage(s"Metalake answers $code").build()
    override def accept(error: ErrorResponse): Unit =
      if (error.code == 404) throw new NoTable("%s", error.message)
      else ErrorHandlers.defaultErrorHandler().accept(error)
  }

  /** The reply of a request whose status is all that is asked for. */
  class Anything extends RESTResponse { override def validate(): Unit = () }

  /** A table's entry in the metastore, which Spark's and Kyuubi's own tables have; None for others. */
  def entryOf(table: Table): Option[CatalogTable] =
    if (table.getClass.getMethods.exists(_.getName == "catalogTable"))
      call(table, "catalogTable") match {
        case entry: CatalogTable => Some(entry)
        case _ => None
      }
    else None

  def isIceberg(entry: CatalogTable): Boolean =
    kindOf(entry) == "iceberg" || entry.provider.exists(_.equalsIgnoreCase("iceberg"))

  def isView(entry: CatalogTable): Boolean =
    entry.tableType == CatalogTableType.VIEW || isIcebergView(entry)

  def isIcebergView(entry: CatalogTable): Boolean = kindOf(entry) == "iceberg-view"

  def formatOf(entry: CatalogTable): String =
    if (entry.storage.inputFormat.exists(_.startsWith("org.apache.hudi."))) "hudi"
    else if (Set("delta", "hudi")(kindOf(entry))) kindOf(entry)
    else entry.provider.getOrElse("hive").toLowerCase

  private def kindOf(entry: CatalogTable) = entry.properties.getOrElse("table_type", "").toLowerCase

  def pathOf(entry: CatalogTable): Properties = Map("path" -> entry.location.toString).asJava

  /** What Spark keeps to its own package, and has had by these names since 3.5. */
  def call(target: Any, method: String, arguments: AnyRef*): Any = {
    val found = target.getClass.getMethods.find(m => m.getName == method && m.getParameterCount == arguments.size)
    found.get.invoke(target, arguments: _*)
  }

  def encoded(name: String): String = URLEncoder.encode(name, "UTF-8").replace("+", "%20")
}
