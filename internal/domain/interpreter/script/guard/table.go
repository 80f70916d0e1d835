package guard

import "github.com/yuin/gopher-lua/ast"

// Sizes of tables in bytes, as upper limits for what Go allocates.
const (
	tableBytes = 700
	entryBytes = 48
	fieldBytes = 200
	// unhintedBytes is for a table without a named field: its map for 32 strings is created when the
	// first one is set.
	unhintedBytes = 3000
	// pairsPerCall is the maximum number of pairs in one call of Entries.
	pairsPerCall = 5
)

// table rewrites a table constructor. The virtual machine sets the fields with names, because it
// needs few registers for them. Entries sets those with other keys.
func (r *rewriter) table(e *ast.TableExpr) ast.Expr {
	if len(e.Fields) > maxFields {
		r.refuse(e.Line(), "the table has more than %d fields", maxFields)
		return e
	}
	var fields []*ast.Field
	var entries, pairs []ast.Expr
	for i, field := range e.Fields {
		if field.Key != nil {
			field.Key = r.expression(field.Key)
		}
		field.Value = r.expression(field.Value)
		if i < len(e.Fields)-1 || field.Key != nil {
			// Only the last entry may have several values.
			oneValue(field.Value)
		}
		_, isNamed := field.Key.(*ast.StringExpr)
		switch {
		case field.Key == nil:
			entries, fields = append(entries, field.Value), append(fields, field)
		case isNamed:
			fields = append(fields, field)
		default:
			pairs = append(pairs, field.Key, field.Value)
		}
	}
	table := r.tableOf(e.Line(), fields, entries)
	for len(pairs) > 0 {
		n := min(len(pairs), 2*pairsPerCall)
		table, pairs = r.call(e.Line(), Entries, append([]ast.Expr{table}, pairs[:n]...)...), pairs[n:]
	}
	return table
}

// tableOf returns a constructor of a table with entries and with fields that have names. entries are
// also in fields.
func (r *rewriter) tableOf(line int, fields []*ast.Field, entries []ast.Expr) ast.Expr {
	named := len(fields) - len(entries)
	if named == 0 && len(entries) <= maxOperands {
		return r.call(line, List, entries...)
	}
	bytes := tableBytes + entryBytes*len(entries) + fieldBytes*named
	if named == 0 {
		bytes += unhintedBytes
	}
	table := &ast.TableExpr{Fields: fields}
	table.SetLine(line)
	return r.call(line, Charge, table, number(line, bytes))
}
