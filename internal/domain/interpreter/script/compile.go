package script

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

const (
	// maxScript is the maximum length of a script, in bytes.
	maxScript = 128 << 10
	// maxNesting is the maximum depth of a syntax tree: gopher-lua's compiler recurses without a limit.
	maxNesting = 1000
	// maxToken is the maximum length of the token in a syntax error, in bytes.
	maxToken = 40
)

// The names of sources in gopher-lua's messages.
const (
	scriptSource = "script"
	moduleSource = "module "
)

// compile returns the main function of a script. source becomes the start of messages.
func compile(text, source string) (main *lua.FunctionProto, err error) {
	if len(text) > maxScript {
		return nil, fmt.Errorf("the script has %d bytes, more than the limit of %d: shorten it", len(text), maxScript)
	}
	// gopher-lua's compiler panics for some invalid scripts, such as those with certain labels.
	defer func() {
		if cause := recover(); cause != nil {
			main, err = nil, fmt.Errorf("the script is not valid: %v", cause)
		}
	}()
	chunk, err := parse.Parse(strings.NewReader(text), source)
	if err != nil {
		return nil, syntaxError(err)
	}
	if err := replaceConcatenations(reflect.ValueOf(chunk), 0); err != nil {
		return nil, err
	}
	main, err = lua.Compile(chunk, source)
	var failure *lua.CompileError
	switch {
	case errors.As(err, &failure):
		return nil, fmt.Errorf("line %d: %s", failure.Line, failure.Message)
	case err != nil:
		return nil, err
	}
	// A script has no arguments, so each call saves the table for them.
	main.IsVarArg &^= lua.VarArgNeedsArg
	return main, nil
}

// replaceConcatenations replaces each a .. b in a syntax tree by a call of the function concat, which
// bounds the length of the result. Otherwise a loop with s = s .. s would use all memory before the
// call ends.
func replaceConcatenations(node reflect.Value, depth int) error {
	switch node.Kind() {
	case reflect.Interface:
		if e, ok := node.Interface().(*ast.StringConcatOpExpr); ok {
			node.Set(reflect.ValueOf(concatenationCall(e)))
		}
		return replaceConcatenations(node.Elem(), depth)
	case reflect.Pointer:
		if positioned, ok := node.Interface().(ast.PositionHolder); ok && depth > maxNesting {
			return fmt.Errorf("line %d: the script is nested deeper than %d levels: split it", positioned.Line(), maxNesting)
		}
		return replaceConcatenations(node.Elem(), depth+1)
	case reflect.Slice:
		for i := range node.Len() {
			if err := replaceConcatenations(node.Index(i), depth); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for _, field := range node.Fields() {
			if !field.CanSet() {
				continue
			}
			if err := replaceConcatenations(field, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

func concatenationCall(e *ast.StringConcatOpExpr) *ast.FuncCallExpr {
	function := &ast.IdentExpr{Value: concatFunction}
	function.SetLine(e.Line())
	call := &ast.FuncCallExpr{Func: function, Args: []ast.Expr{e.Lhs}}
	call.SetLine(e.Line())
	call.SetLastLine(e.LastLine())
	rest := e.Rhs
	for next, ok := rest.(*ast.StringConcatOpExpr); ok; next, ok = rest.(*ast.StringConcatOpExpr) {
		call.Args, rest = append(call.Args, next.Lhs), next.Rhs
	}
	// An operand is one value, but the last argument of a call may be several.
	switch last := rest.(type) {
	case *ast.FuncCallExpr:
		last.AdjustRet = true
	case *ast.Comma3Expr:
		last.AdjustRet = true
	}
	call.Args = append(call.Args, rest)
	return call
}

// syntaxError returns the parser's error with its line.
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
