package architecture

import (
	"fmt"
	"go/ast"
	"go/types"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// optionUses collects which options and gates the code declares, reads and sets.
type optionUses struct {
	// names are the declared fields of structs, and the feature gates.
	names map[types.Object]string
	// structs are the fields of each struct type.
	structs map[*types.Struct][]*types.Var
	// isOptions are the structs that hold options: by name, or because a flag sets a field.
	isOptions      map[*types.Struct]bool
	read, set      map[types.Object]bool
	gates          map[types.Object]bool
	unboundFlags   []string
	namesElsewhere map[string]map[string]bool // by import path
}

func newOptionUses() *optionUses {
	return &optionUses{
		names: map[types.Object]string{}, structs: map[*types.Struct][]*types.Var{}, isOptions: map[*types.Struct]bool{},
		read: map[types.Object]bool{}, set: map[types.Object]bool{}, gates: map[types.Object]bool{}, namesElsewhere: map[string]map[string]bool{},
	}
}

var identifier = regexp.MustCompile(`[A-Z]\w*`)

// addNames records each exported name in a file as a possible use of this name in every
// package that the file imports.
func (o *optionUses) addNames(t *testing.T, s source) {
	t.Helper()
	file, _ := parseGo(t, s.path, s.content)
	for _, imported := range file.Imports {
		path := strings.Trim(imported.Path.Value, `"`)
		if !isWithin(path, module) {
			continue
		}
		if o.namesElsewhere[path] == nil {
			o.namesElsewhere[path] = map[string]bool{}
		}
		for _, name := range identifier.FindAll(s.content, -1) {
			o.namesElsewhere[path][string(name)] = true
		}
	}
}

func (o *optionUses) addPackage(p *checkedPackage) {
	for identifier, object := range p.info.Defs {
		o.declare(p, identifier, object)
	}
	for _, file := range p.files {
		for _, declaration := range file.Decls {
			w := &optionWalker{optionUses: o, info: p.info, name: shortPath(p.path) + "." + declarationName(declaration), path: p.path, declaresFlags: p.declaresFlags()}
			w.isDeclaring = w.declaresFlags && isDeclaringFunction(p.info, declaration)
			ast.Inspect(declaration, w.visit)
		}
	}
}

// declare records the fields of a struct type, or a feature gate.
func (o *optionUses) declare(p *checkedPackage, identifier *ast.Ident, object types.Object) {
	switch object := object.(type) {
	case *types.TypeName:
		fields, ok := object.Type().Underlying().(*types.Struct)
		if !ok || o.structs[fields] != nil {
			return
		}
		for i := range fields.NumFields() {
			field := fields.Field(i)
			o.structs[fields] = append(o.structs[fields], field)
			if o.names[field] == "" && field.Exported() && !field.Embedded() {
				o.names[field] = shortPath(p.path) + "." + object.Name() + "." + field.Name()
			}
		}
		if strings.HasSuffix(object.Name(), "Options") {
			o.isOptions[fields] = true
		}
	case *types.Const:
		if named, ok := object.Type().(*types.Named); ok && named.Obj().Name() == "Feature" && object.Parent() == object.Pkg().Scope() {
			o.gates[object] = true
			o.names[object] = shortPath(p.path) + "." + identifier.Name
		}
	}
}

// problems returns the options and gates that do not reach a reader, sorted.
func (o *optionUses) problems() []string {
	found := slices.Clone(o.unboundFlags)
	for options, fields := range o.structs {
		for _, field := range fields {
			name := o.names[field]
			if !o.isOptions[options] || name == "" || o.namesElsewhere[field.Pkg().Path()][field.Name()] {
				continue
			}
			if !o.read[field] {
				found = append(found, name+": nothing reads it")
			} else if !o.set[field] {
				found = append(found, name+": nothing sets it")
			}
		}
	}
	for gate := range o.gates {
		if !o.read[gate] {
			found = append(found, o.names[gate]+": nothing reads it")
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// optionWalker visits one declaration.
type optionWalker struct {
	*optionUses
	info *types.Info
	// name is the name of the declaration. path is the path of its package. declaresFlags
	// means that the package can declare flags.
	name, path    string
	declaresFlags bool
	// isDeclaring means that reads do not count: the function declares flags, sets defaults or
	// validates.
	isDeclaring bool
	parents     []ast.Node
}

func (o *optionWalker) visit(node ast.Node) bool {
	if node == nil {
		o.parents = o.parents[:len(o.parents)-1]
		return true
	}
	switch node := node.(type) {
	case *ast.SelectorExpr:
		if selection := o.info.Selections[node]; selection != nil && selection.Kind() == types.FieldVal {
			o.visitField(node, selection.Obj().(*types.Var).Origin())
		}
	case *ast.CompositeLit:
		o.visitLiteral(node)
	case *ast.Ident:
		o.visitGate(node)
	case *ast.ExprStmt:
		o.visitStatement(node)
	}
	o.parents = append(o.parents, node)
	return true
}

// visitField records the use of a field. Binding the field to a flag or assigning it sets
// the field, and any other use reads it. In an expression with several fields, such as
// a.b.c, the use of the last field counts for all of them.
func (o *optionWalker) visitField(node ast.Expr, field *types.Var) {
	for i := len(o.parents) - 1; i >= 0; i-- {
		switch parent := o.parents[i].(type) {
		case *ast.SelectorExpr:
			if selection := o.info.Selections[parent]; selection != nil && selection.Kind() == types.FieldVal {
				node = parent
				continue
			}
		case *ast.ParenExpr, *ast.StarExpr:
			node = parent.(ast.Expr)
			continue
		case *ast.AssignStmt:
			if slices.Contains(parent.Lhs, node) {
				o.set[field] = true
				return
			}
		case *ast.IncDecStmt:
			o.set[field] = true
			return
		case *ast.UnaryExpr:
			if parent.Op.String() == "&" && (o.isDeclaring || o.isElement(i)) {
				o.set[field] = true
				o.markOptions(field)
				return
			}
		}
		break
	}
	if !o.isDeclaring {
		o.read[field] = true
	}
}

// isElement reports whether parents[i] is an element of a table of flags: a literal of a
// type of the package that declares the flags.
func (o *optionWalker) isElement(i int) bool {
	for i--; i >= 0 && o.declaresFlags; i-- {
		if _, isPair := o.parents[i].(*ast.KeyValueExpr); isPair {
			continue
		}
		literal, ok := o.parents[i].(*ast.CompositeLit)
		if !ok {
			return false
		}
		named, ok := o.info.Types[literal].Type.(*types.Named)
		return ok && named.Obj().Pkg().Path() == o.path
	}
	return false
}

// markOptions records that the struct of a field, which a flag sets, holds options.
func (o *optionWalker) markOptions(field *types.Var) {
	for options, fields := range o.structs {
		if slices.Contains(fields, field) {
			o.isOptions[options] = true
		}
	}
}

func (o *optionWalker) visitLiteral(literal *ast.CompositeLit) {
	fields, ok := o.info.Types[literal].Type.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			o.set[o.info.Uses[pair.Key.(*ast.Ident)]] = true
		} else {
			o.set[fields.Field(i)] = true
		}
	}
}

// visitGate records a gate as read if it is an argument of Enabled, or in the row of a controller. If
// the controller is not implemented, the program logs that the gate has no effect.
func (o *optionWalker) visitGate(identifier *ast.Ident) {
	gate, ok := o.info.Uses[identifier].(*types.Const)
	if !ok {
		return
	}
	for i := len(o.parents) - 1; i >= 0; i-- {
		switch parent := o.parents[i].(type) {
		case *ast.CallExpr:
			if called, ok := parent.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "Enabled" {
				o.read[gate] = true
			}
		case *ast.KeyValueExpr:
			if key, ok := parent.Key.(*ast.Ident); ok && key.Name == "Gate" {
				o.read[gate] = true
			}
		}
	}
}

// visitStatement finds flags that are declared without a variable, so that no code reads
// their value.
func (o *optionWalker) visitStatement(statement *ast.ExprStmt) {
	call, ok := statement.X.(*ast.CallExpr)
	if !ok || strings.HasSuffix(o.name, "IgnoredFlags.AddFlags") {
		return
	}
	called, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !isFlagSet(o.info.Types[called.X].Type) {
		return
	}
	if _, isPointer := o.info.Types[call].Type.(*types.Pointer); isPointer {
		o.unboundFlags = append(o.unboundFlags, o.name+": a flag has no variable")
	}
}

func isFlagSet(t types.Type) bool {
	return t != nil && strings.TrimPrefix(t.String(), "*") == "github.com/spf13/pflag.FlagSet"
}

// declaresFlags reports whether the package uses pflag.
func (c *checkedPackage) declaresFlags() bool {
	return slices.ContainsFunc(c.files, func(file *ast.File) bool {
		return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"github.com/spf13/pflag"` })
	})
}

var declaringName = regexp.MustCompile(`^(?:[Dd]efault|[Vv]alidate)`)

// isDeclaringFunction reports whether a function declares flags, sets defaults or validates.
func isDeclaringFunction(info *types.Info, declaration ast.Decl) bool {
	function, ok := declaration.(*ast.FuncDecl)
	if !ok {
		return false
	}
	if declaringName.MatchString(function.Name.Name) {
		return true
	}
	return slices.ContainsFunc(function.Type.Params.List, func(parameter *ast.Field) bool {
		return isFlagSet(info.Types[parameter.Type].Type) && function.Type.Results == nil
	})
}

// declarationName returns the name of a function with its receiver.
func declarationName(declaration ast.Decl) string {
	function, ok := declaration.(*ast.FuncDecl)
	if !ok {
		return ""
	}
	if function.Recv == nil {
		return function.Name.Name
	}
	return fmt.Sprintf("%s.%s", strings.TrimPrefix(types.ExprString(function.Recv.List[0].Type), "*"), function.Name.Name)
}

// shortPath returns the path of a package below internal.
func shortPath(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module+"/"), "internal/")
}
