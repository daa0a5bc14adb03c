package dataset

import (
	"strings"

	"github.com/parquet-go/parquet-go"
)

// The types of columns, with the names that the DuckLake specification has for them.
const (
	intType     = "int64"
	boolType    = "boolean"
	textType    = "varchar"
	idType      = "uuid"
	timeType    = "timestamptz"
	decimalType = "decimal(38,18)"
)

// Column is a column of a table.
type Column struct {
	ID       int // field id, unique in the table, which never means another column
	Name     string
	Type     string // int64, boolean, varchar, uuid, timestamptz or decimal(38,18)
	Optional bool   // whether it may be NULL
}

// Table is a table of a journal. All tables have different names.
type Table struct {
	Name    string
	Columns []Column
}

// Tables returns the tables of a journal.
func Tables(journal string) (all []Table) {
	for _, t := range tablesOf(journal) {
		all = append(all, Table{t.name, t.columns})
	}
	return all
}

func columnsOf(schema *parquet.Schema) (all []Column) {
	for _, f := range schema.Fields() {
		all = append(all, Column{f.ID(), f.Name(), typeOf(f.Type()), f.Optional()})
	}
	return all
}

// typeOf returns the name of a type. It panics for a type that no column has.
func typeOf(t parquet.Type) string {
	switch name := t.String(); {
	case name == "INT64", name == "INT(64,true)":
		return intType
	case name == "BOOLEAN":
		return boolType
	case name == "STRING":
		return textType
	case name == "UUID":
		return idType
	case strings.HasPrefix(name, "TIMESTAMP("):
		return timeType
	case strings.HasPrefix(name, "DECIMAL("):
		return decimalType
	default:
		panic("dataset: no name for the type " + name)
	}
}
