package guard

import (
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

func (r *rewriter) expressions(list []ast.Expr) []ast.Expr {
	for i, expr := range list {
		list[i] = r.expression(expr)
	}
	return list
}

// expression returns the expression that replaces an expression.
func (r *rewriter) expression(expr ast.Expr) ast.Expr {
	if !r.enter(expr.Line()) {
		return expr
	}
	defer r.leave()
	switch e := expr.(type) {
	case *ast.IdentExpr:
		r.name(e.Line(), e.Value)
	case *ast.StringExpr:
		r.constant(e.Line(), "\""+e.Value)
	case *ast.NumberExpr:
		r.constant(e.Line(), "0"+e.Value)
	case *ast.Comma3Expr:
		r.function.usesVarargs = true
	case *ast.AttrGetExpr:
		e.Object, e.Key = r.expression(e.Object), r.expression(e.Key)
	case *ast.TableExpr:
		return r.table(e)
	case *ast.FunctionExpr:
		r.body(e)
		if r.mayRepeat() {
			return r.call(e.Line(), Closure, e)
		}
	case *ast.FuncCallExpr:
		r.functionCall(e)
	case *ast.StringConcatOpExpr:
		return r.concat(e)
	case *ast.UnaryLenOpExpr:
		return r.call(e.Line(), Length, r.expression(e.Expr))
	default:
		r.operation(expr)
	}
	return expr
}

// mayRepeat reports whether the current statement may run more than once.
func (r *rewriter) mayRepeat() bool {
	return r.hasLabels || r.function.outer != nil || r.function.loops > 0
}

// operation rewrites the operands of an operation that does not allocate.
func (r *rewriter) operation(expr ast.Expr) {
	switch e := expr.(type) {
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = r.expression(e.Lhs), r.expression(e.Rhs)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = r.expression(e.Lhs), r.expression(e.Rhs)
	case *ast.ArithmeticOpExpr:
		// The compiler folds the constants below each operation again.
		r.spend(e.Line(), r.depth)
		e.Lhs, e.Rhs = r.expression(e.Lhs), r.expression(e.Rhs)
	case *ast.UnaryMinusOpExpr:
		r.spend(e.Line(), r.depth)
		e.Expr = r.expression(e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = r.expression(e.Expr)
	case *ast.TrueExpr, *ast.FalseExpr, *ast.NilExpr:
	default:
		r.refuse(e.Line(), "unknown expression %T", e)
	}
}

func (r *rewriter) functionCall(e *ast.FuncCallExpr) {
	if e.Func != nil {
		e.Func = r.expression(e.Func)
	} else {
		e.Receiver = r.expression(e.Receiver)
		r.constant(e.Line(), "\""+e.Method)
	}
	e.Args = r.expressions(e.Args)
}

// maxOperands is the maximum number of arguments of one call of Concat. All arguments of a call are
// in registers, and a function has 200 registers.
const maxOperands = 40

// concat rewrites a .. (b .. (c .. d)) to one call for the whole chain.
func (r *rewriter) concat(e *ast.StringConcatOpExpr) ast.Expr {
	operands := []ast.Expr{r.expression(e.Lhs)}
	rest := e.Rhs
	for len(operands) < maxOperands {
		next, isConcat := rest.(*ast.StringConcatOpExpr)
		if !isConcat {
			break
		}
		operands, rest = append(operands, r.expression(next.Lhs)), next.Rhs
	}
	return r.call(e.Line(), Concat, append(operands, oneValue(r.expression(rest)))...)
}

// oneValue truncates the values of a call or of '...' to the first one.
func oneValue(expr ast.Expr) ast.Expr {
	switch e := expr.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
	return expr
}

// isMultiple reports whether an expression can have several values.
func isMultiple(expr ast.Expr) bool {
	switch e := expr.(type) {
	case *ast.FuncCallExpr:
		return !e.AdjustRet
	case *ast.Comma3Expr:
		return !e.AdjustRet
	}
	return false
}

// call returns a call of a hidden function with exactly one result.
func (r *rewriter) call(line int, function string, arguments ...ast.Expr) *ast.FuncCallExpr {
	call := &ast.FuncCallExpr{Func: name(line, function), Args: arguments, AdjustRet: true}
	call.SetLine(line)
	r.spend(line, r.function.locals+r.depth)
	return call
}

func number(line, value int) ast.Expr {
	expr := &ast.NumberExpr{Value: strconv.Itoa(value)}
	expr.SetLine(line)
	return expr
}
