package io.metalake.spark {

  import java.util

  import org.apache.spark.SPARK_VERSION
  import org.apache.spark.sql.SQLContext
  import org.apache.spark.sql.connector.catalog.{Table, TableProvider}
  import org.apache.spark.sql.connector.expressions.Transform
  import org.apache.spark.sql.execution.datasources.DataSource
  import org.apache.spark.sql.internal.SQLConf
  import org.apache.spark.sql.sources.{BaseRelation, RelationProvider}
  import org.apache.spark.sql.types.StructType
  import org.apache.spark.sql.util.CaseInsensitiveStringMap

  /** Formats that Spark has by a jar of their own. */
  object Formats {
    private val old = SPARK_VERSION.startsWith("3.5.")

    /** What is missing where a format cannot be read or made. */
    val Jars: Map[String, String] = Map(
      "delta" -> ("the jar is missing: " +
        (if (old) "io.delta:delta-spark_2.12:3.3.3" else "io.delta:delta-spark_2.13:4.1.0")),
      "hudi" -> (if (old) "the jar is missing: org.apache.hudi:hudi-spark3.5-bundle_2.12:1.0.2"
                 else "Hudi has no jar for this Spark; Spark 3.5 has org.apache.hudi:hudi-spark3.5-bundle_2.12:1.0.2")
    )

    /** The format's source, if its jar is there and it is of Spark's second kind. */
    def sourceOf(format: String): Option[TableProvider] =
      DataSource.lookupDataSourceV2(format, SQLConf.get).filterNot(_.isInstanceOf[Missing])

    def lacksJar(format: String): Boolean =
      Jars.contains(format) && classOf[Missing].isAssignableFrom(DataSource.lookupDataSource(format, SQLConf.get))
  }

  /** Stands for a format of `Jars` where no jar has it.
    *
    * Spark looks for the format before it asks a catalog, and knows only that there is none by its name. If no jar
    * claims the name, it takes the class `DefaultSource` of the package of that name, which is one of those below.
    */
  abstract class Missing(format: String) extends TableProvider with RelationProvider {
    private def refuse: Nothing =
      throw new UnsupportedOperationException(s"Spark has no source $format here: ${Formats.Jars(format)}")

    override def inferSchema(options: CaseInsensitiveStringMap): StructType = refuse
    override def getTable(schema: StructType, parts: Array[Transform], own: util.Map[String, String]): Table = refuse
    override def createRelation(sql: SQLContext, own: Map[String, String]): BaseRelation = refuse
    override def supportsExternalMetadata(): Boolean = true // so that a table with columns comes to its catalog
  }
}

package delta {
  class DefaultSource extends io.metalake.spark.Missing("delta")
}

package hudi {
  class DefaultSource extends io.metalake.spark.Missing("hudi")
}
