// Package guard compiles scripts that are not trusted. It answers: can this text be compiled at
// bounded cost, and can the virtual machine of gopher-lua run it with every allocation counted?
//
// Invariants:
//
//   - The time and the memory of a compilation are bounded, for any text.
//   - A compiled script contains no instruction that allocates memory without a bound. Such an
//     operation is a call of a hidden function instead, which the caller of this package supplies.
//   - A script cannot name, read or replace a hidden function: it is an upvalue whose name is not an
//     identifier of Lua.
//   - A compiled script has the lines of its text, and behaves like its text.
package guard

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// The hidden functions. A name is the name of the upvalue in the prototype of a compiled script.
const (
	// Concat(a, b, ...) returns a .. b .. …
	Concat = " concat"
	// Set(table, key, value) assigns table[key] = value.
	Set = " set"
	// Length(value) returns #value.
	Length = " length"
	// List(...) returns a new table with the values at 1, 2, …
	List = " list"
	// Charge(table, bytes) counts the bytes of a new table, and returns the table.
	Charge = " charge"
	// Entries(table, key, value, key, value, ...) assigns table[key] = value for each pair, and
	// returns the table.
	Entries = " entries"
	// Closure(function) counts the bytes of a new function, and returns the function.
	Closure = " closure"
	// Arguments(...) returns the table arg of a function with variable arguments.
	Arguments = " arguments"
)

func hiddenFunctions() []string {
	return []string{Concat, Set, Length, List, Charge, Entries, Closure, Arguments}
}

const (
	// maxFunctions is the maximum number of functions in a text. The compiler needs about 20 KiB for
	// each.
	maxFunctions = 1000
	// maxUpvalues is the maximum number of upvalues of a function: the virtual machine counts them
	// in one byte.
	maxUpvalues = 255
	// maxInstructions is the maximum length of a function. The offset of a jump has 18 bits.
	maxInstructions = 100_000
)

// Compile returns the main function of a script. name becomes the name of the source in messages:
// "name:line: message". maxLength is the maximum length of the text in bytes. An error contains the
// line, if there is one.
func Compile(text, name string, maxLength int) (proto *lua.FunctionProto, err error) {
	if len(text) > maxLength {
		return nil, fmt.Errorf("the script has %d bytes, more than the limit of %d", len(text), maxLength)
	}
	hasLabels, err := scan(text)
	if err != nil {
		return nil, err
	}
	chunk, err := parse.Parse(strings.NewReader(text), name)
	if err != nil {
		return nil, syntaxError(err)
	}
	main, err := rewrite(chunk, hasLabels)
	if err != nil {
		return nil, err
	}
	// gopher-lua has inputs for which its compiler panics, for example some labels.
	defer func() {
		if cause := recover(); cause != nil {
			proto, err = nil, fmt.Errorf("the compiler refuses the script: %v", cause)
		}
	}()
	return compile(main, name)
}

// compile compiles the function inside of a chunk that declares the hidden functions as local
// variables. So they are upvalues of the function.
func compile(main *ast.FunctionExpr, name string) (*lua.FunctionProto, error) {
	chunk, err := lua.Compile([]ast.Stmt{
		&ast.LocalAssignStmt{Names: hiddenFunctions()},
		&ast.ReturnStmt{Exprs: []ast.Expr{main}},
	}, name)
	var failure *lua.CompileError
	switch {
	case errors.As(err, &failure):
		return nil, fmt.Errorf("line %d: %s", failure.Line, failure.Message)
	case err != nil:
		return nil, err
	}
	proto := chunk.FunctionPrototypes[0]
	if err := checkLimits(proto); err != nil {
		return nil, err
	}
	clip(proto)
	return proto, nil
}

// checkLimits refuses functions that gopher-lua compiles to wrong code.
func checkLimits(proto *lua.FunctionProto) error {
	if len(proto.Code) > maxInstructions {
		return fmt.Errorf("line %d: the function is too long: split it into several functions", proto.LineDefined)
	}
	if len(proto.DbgUpvalues) > maxUpvalues {
		return fmt.Errorf("line %d: the function uses %d local variables of enclosing functions, more than the limit of %d",
			proto.LineDefined, len(proto.DbgUpvalues), maxUpvalues)
	}
	for _, inner := range proto.FunctionPrototypes {
		if err := checkLimits(inner); err != nil {
			return err
		}
	}
	return nil
}

// clip releases the unused capacity that the compiler allocates for each function.
func clip(proto *lua.FunctionProto) {
	proto.Code = slices.Clone(proto.Code)
	proto.DbgSourcePositions = slices.Clone(proto.DbgSourcePositions)
	proto.Constants = slices.Clone(proto.Constants)
	proto.FunctionPrototypes = slices.Clone(proto.FunctionPrototypes)
	proto.DbgCalls = slices.Clone(proto.DbgCalls)
	// Only the library debug reads them, which scripts do not have.
	proto.DbgLocals = nil
	for _, inner := range proto.FunctionPrototypes {
		clip(inner)
	}
}

// maxToken is the maximum length of the part of a script in an error.
const maxToken = 40

// syntaxError returns the error of the parser with its line.
func syntaxError(err error) error {
	var failure *parse.Error
	if !errors.As(err, &failure) {
		return err
	}
	message := strings.TrimSpace(failure.Message)
	if message == "" {
		message = "syntax error"
	}
	if failure.Pos.Line == parse.EOF {
		return fmt.Errorf("at the end of the script: %s", message)
	}
	token := failure.Token
	if len(token) > maxToken {
		token = strings.ToValidUTF8(token[:maxToken], "") + "…"
	}
	return fmt.Errorf("line %d, column %d: %s near '%s'", failure.Pos.Line, failure.Pos.Column, message, token)
}
