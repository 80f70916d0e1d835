package guard

import (
	"reflect"
	"strings"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// maxNamed is the maximum length of a text in which IndexedName searches.
const maxNamed = 64 << 10

// IndexedName returns what a compiled text reads the field key from in a line, for messages: for
// a.b.key the result is "field 'b'". It is empty if the text has several candidates or none.
func IndexedName(text string, line int, key string) string {
	if len(text) > maxNamed {
		return ""
	}
	chunk, err := parse.Parse(strings.NewReader(text), "")
	if err != nil {
		return ""
	}
	names := map[string]struct{}{}
	visit(reflect.ValueOf(chunk), func(node any) {
		switch e := node.(type) {
		case *ast.AttrGetExpr:
			if name, isName := e.Key.(*ast.StringExpr); isName && name.Value == key && e.Line() == line {
				names[describe(e.Object)] = struct{}{}
			}
		case *ast.FuncCallExpr:
			if e.Func == nil && e.Method == key && e.Line() == line {
				names[describe(e.Receiver)] = struct{}{}
			}
		}
	})
	if len(names) != 1 {
		return ""
	}
	for name := range names {
		return name
	}
	return ""
}

func describe(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.IdentExpr:
		return "variable '" + e.Value + "'"
	case *ast.AttrGetExpr:
		if key, isName := e.Key.(*ast.StringExpr); isName {
			return "field '" + key.Value + "'"
		}
	case *ast.FuncCallExpr:
		switch function := e.Func.(type) {
		case *ast.IdentExpr:
			return "result of '" + function.Value + "'"
		case *ast.AttrGetExpr:
			if key, isName := function.Key.(*ast.StringExpr); isName {
				return "result of '" + key.Value + "'"
			}
		}
	}
	return ""
}

// visit calls found for each node of a syntax tree.
func visit(value reflect.Value, found func(node any)) {
	switch value.Kind() {
	case reflect.Interface:
		visit(value.Elem(), found)
	case reflect.Pointer:
		if !value.IsNil() {
			found(value.Interface())
			visit(value.Elem(), found)
		}
	case reflect.Slice:
		for i := range value.Len() {
			visit(value.Index(i), found)
		}
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				visit(value.Field(i), found)
			}
		}
	}
}
