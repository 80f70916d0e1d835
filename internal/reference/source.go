package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "karmada.io/karmada"

// source contains the information in the code about the constants of api.
type source struct {
	// constants are the string constants of api that have a value, in the order of the files.
	constants []constant
	// kinds contains, by the name of a type, the folders of api that define a type of this name.
	kinds map[string][]string
	// uses contains, by folder and name of a constant of api, the packages that use the constant.
	uses map[string][]string
	// components contains, by folder, the names that the components of packages have in events.
	components map[string]string
	// gates contains the names of the feature gates that the code reads, or that an implemented
	// controller requires.
	gates map[string]bool
}

// constant is a string constant of api.
type constant struct {
	// folder is the folder of the package, such as api/work/v1alpha1.
	folder, name, value string
	// comment is the comment of the constant in one line. It is empty if the constant has no
	// comment.
	comment string
}

// key identifies a constant in source.uses.
func (c *constant) key() string { return c.folder + "." + c.name }

// readSource parses the code of api, and the code of the programs that uses api. root is the root
// directory of the repository.
func readSource(root string) (*source, error) {
	s := &source{kinds: map[string][]string{}, uses: map[string][]string{}, components: map[string]string{}, gates: map[string]bool{}}
	if err := forEachFile(root, "api", s.addDefinitions); err != nil {
		return nil, err
	}
	return s, forEachFile(root, "internal", s.addUses)
}

// forEachFile calls visit for each Go file below a folder, except for tests and generated code.
func forEachFile(root, folder string, visit func(folder string, file *ast.File)) error {
	err := filepath.WalkDir(filepath.Join(root, folder), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
			strings.HasPrefix(entry.Name(), "zz_") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err // names the file
		}
		relative, err := filepath.Rel(root, filepath.Dir(name))
		visit(filepath.ToSlash(relative), file)
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the code of %s: %w", folder, err)
	}
	return nil
}

// addDefinitions adds the constants and types of a file of api.
func (s *source) addDefinitions(folder string, file *ast.File) {
	for _, declared := range file.Decls {
		group, ok := declared.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				s.kinds[spec.Name.Name] = append(s.kinds[spec.Name.Name], folder)
			case *ast.ValueSpec:
				if group.Tok == token.CONST {
					s.addConstants(folder, group, spec)
				}
			}
		}
	}
}

func (s *source) addConstants(folder string, group *ast.GenDecl, spec *ast.ValueSpec) {
	comment := spec.Doc
	if !group.Lparen.IsValid() {
		comment = group.Doc
	}
	for i, value := range spec.Values {
		literal, ok := value.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			continue
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			continue
		}
		s.constants = append(s.constants, constant{
			folder: folder, name: spec.Names[i].Name, value: text, comment: strings.Join(strings.Fields(comment.Text()), " "),
		})
	}
}

// addUses records which constants of api a file uses.
func (s *source) addUses(folder string, file *ast.File) {
	s.addComponent(folder, file)
	s.addGates(file)
	imported := map[string]string{}
	for _, spec := range file.Imports {
		imports, err := strconv.Unquote(spec.Path.Value)
		if err != nil || spec.Name == nil || !strings.HasPrefix(imports, module+"/api/") {
			continue
		}
		imported[spec.Name.Name] = strings.TrimPrefix(imports, module+"/")
	}
	ast.Inspect(file, func(node ast.Node) bool {
		selected, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if name, ok := selected.X.(*ast.Ident); ok && imported[name.Name] != "" {
			key := imported[name.Name] + "." + selected.Sel.Name
			if !slices.Contains(s.uses[key], folder) {
				s.uses[key] = append(s.uses[key], folder)
			}
		}
		return true
	})
}

// addGates records the feature gates that a file reads, and those that the rows of its implemented
// controllers require.
func (s *source) addGates(file *ast.File) {
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CallExpr:
			if method, ok := node.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "Enabled" && len(node.Args) == 1 {
				s.addGate(node.Args[0])
			}
		case *ast.CompositeLit:
			if gate := fieldOf(node, "Gate"); gate != nil && fieldOf(node, "Add") != nil {
				s.addGate(gate)
			}
		}
		return true
	})
}

// addGate records the feature gate in an expression such as gates.Failover.
func (s *source) addGate(expression ast.Expr) {
	if selected, ok := expression.(*ast.SelectorExpr); ok {
		s.gates[selected.Sel.Name] = true
	}
}

// fieldOf returns the value of a field in a literal, or nil if the literal does not set the field.
func fieldOf(literal *ast.CompositeLit, name string) ast.Expr {
	for _, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name == name {
				return pair.Value
			}
		}
	}
	return nil
}

// addComponent records the component name that a package declares in its constant Name.
func (s *source) addComponent(folder string, file *ast.File) {
	for _, declared := range file.Decls {
		group, ok := declared.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			named, ok := spec.(*ast.ValueSpec)
			if !ok || named.Names[0].Name != "Name" || len(named.Values) == 0 {
				continue
			}
			switch value := named.Values[0].(type) {
			case *ast.BasicLit:
				s.components[folder], _ = strconv.Unquote(value.Value)
			case *ast.SelectorExpr:
				s.components[folder] = s.valueOf(value.Sel.Name)
			}
		}
	}
}

// valueOf returns the value of the constant of api with the given name.
func (s *source) valueOf(name string) string {
	for i := range s.constants {
		if s.constants[i].name == name {
			return s.constants[i].value
		}
	}
	return ""
}

// users returns the names of the components that use a constant. If a package is not a component,
// its name is the last element of its path. The package with the table of conditions is excluded.
func (s *source) users(c *constant) []string {
	var names []string
	for _, folder := range s.uses[c.key()] {
		name := s.componentOf(folder)
		if folder != "internal/domain/conditions" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// componentOf returns the name of the component of a folder. It is the component name of the
// package in this folder, or in the closest parent folder that has one. If there is none, it is
// the name of the folder.
func (s *source) componentOf(folder string) string {
	for parent := folder; parent != "." && parent != "/"; parent = path.Dir(parent) {
		if name := s.components[parent]; name != "" {
			return name
		}
	}
	return path.Base(folder)
}
