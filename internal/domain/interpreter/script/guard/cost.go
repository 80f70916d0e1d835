package guard

import "fmt"

const (
	// maxDepth is the maximum depth of the syntax tree. The compiler is recursive.
	maxDepth = 1000
	// maxCost is the maximum number of comparisons with which the compiler searches names, constants
	// and labels. It corresponds to about 0.3 seconds.
	maxCost = 50_000_000
	// maxFields is the maximum number of fields of one table constructor. gopher-lua miscompiles
	// constructors with more than 25 550.
	maxFields = 25_000
)

// function is a function whose body is rewritten.
type function struct {
	outer *function
	// constants are the constants and global names of the function.
	constants map[string]struct{}
	labels    int
	// locals is the number of visible local variables, with those of outer functions.
	locals int
	// loops is the number of loops around the current statement.
	loops int
	// hasVarargs and usesVarargs: the function is declared with '...', and its body contains it.
	hasVarargs, usesVarargs bool
	// namesArg reports whether the body, with the functions inside, contains the name arg.
	namesArg bool
}

func (f *function) inner(parameters int, hasVarargs bool) *function {
	inner := &function{outer: f, constants: map[string]struct{}{}, hasVarargs: hasVarargs, locals: parameters}
	if f != nil {
		inner.locals += f.locals
	}
	return inner
}

// refuse stores the first error.
func (r *rewriter) refuse(line int, format string, arguments ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("line %d: %s", line, fmt.Sprintf(format, arguments...))
	}
}

// enter begins a node of the syntax tree. If it returns false, the node must not be rewritten.
func (r *rewriter) enter(line int) bool {
	r.depth++
	if r.depth > maxDepth {
		r.refuse(line, "the script is nested deeper than %d levels", maxDepth)
	}
	return r.err == nil
}

func (r *rewriter) leave() { r.depth-- }

// spend counts comparisons of the compiler.
func (r *rewriter) spend(line, comparisons int) {
	r.cost += comparisons
	if r.cost > maxCost {
		r.refuse(line, "the script is too complex to compile: use fewer names and constants in one function")
	}
}

// constant counts the search for a constant of the current function.
func (r *rewriter) constant(line int, value string) {
	f := r.function
	f.constants[value] = struct{}{}
	r.spend(line, len(f.constants))
}

// name counts the search for a name, which may be a global name.
func (r *rewriter) name(line int, name string) {
	if name == "arg" {
		for f := r.function; f != nil; f = f.outer {
			f.namesArg = true
		}
	}
	r.spend(line, r.function.locals+r.depth)
	r.constant(line, name)
}

// label counts the search for a label.
func (r *rewriter) label(line int) {
	r.function.labels++
	r.spend(line, r.function.labels)
}
