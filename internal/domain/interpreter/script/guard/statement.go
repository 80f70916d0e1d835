package guard

import (
	"fmt"

	"github.com/yuin/gopher-lua/ast"
)

// rewriter replaces the operations of a syntax tree that allocate by calls of hidden functions.
type rewriter struct {
	function *function
	// hasLabels reports whether the text has labels, so that statements outside of loops may repeat.
	hasLabels bool
	functions int
	depth     int
	cost      int
	// temporaries is the number of names that the rewriter has made up.
	temporaries int
	err         error
}

// rewrite returns the main function of a chunk.
func rewrite(chunk []ast.Stmt, hasLabels bool) (*ast.FunctionExpr, error) {
	r := &rewriter{hasLabels: hasLabels}
	// A chunk may use '...', which is empty.
	main := &ast.FunctionExpr{ParList: &ast.ParList{HasVargs: true}, Stmts: chunk}
	main.SetLine(1)
	if len(chunk) > 0 {
		last := chunk[len(chunk)-1]
		main.SetLastLine(max(last.Line(), last.LastLine()))
	}
	r.body(main)
	return main, r.err
}

// body rewrites the body of a function.
func (r *rewriter) body(f *ast.FunctionExpr) {
	if r.functions++; r.functions > maxFunctions {
		r.refuse(f.Line(), "the script has more than %d functions", maxFunctions)
	}
	r.function = r.function.inner(len(f.ParList.Names)+2, f.ParList.HasVargs)
	f.Stmts = r.block(f.Stmts)
	inner := r.function
	r.function = inner.outer
	switch {
	case !inner.hasVarargs || inner.usesVarargs:
	case inner.namesArg && inner.outer != nil:
		// The virtual machine would create the table arg, which may be large, in the call. If the
		// function uses '...', the virtual machine does not create it.
		table := r.call(f.Line(), Arguments, &ast.Comma3Expr{})
		table.AdjustRet = false
		f.Stmts = append([]ast.Stmt{assign(f.Line(), name(f.Line(), "arg"), table)}, f.Stmts...)
	default:
		f.ParList.HasVargs = false
	}
}

// block rewrites the statements of a block. Local variables that they declare end with the block.
func (r *rewriter) block(statements []ast.Stmt) []ast.Stmt {
	locals := r.function.locals
	rewritten := make([]ast.Stmt, 0, len(statements))
	for i, statement := range statements {
		if _, isLabel := statement.(*ast.LabelStmt); isLabel {
			// The compiler looks at all following labels.
			r.spend(statement.Line(), trailingLabels(statements[i:]))
		}
		if !r.enter(statement.Line()) {
			break
		}
		rewritten = append(rewritten, r.statement(statement)...)
		r.leave()
	}
	r.function.locals = locals
	return rewritten
}

func trailingLabels(statements []ast.Stmt) int {
	for i, statement := range statements {
		if _, isLabel := statement.(*ast.LabelStmt); !isLabel {
			return i
		}
	}
	return len(statements)
}

// statement returns the statements that replace a statement.
func (r *rewriter) statement(statement ast.Stmt) []ast.Stmt {
	switch s := statement.(type) {
	case *ast.AssignStmt:
		return []ast.Stmt{r.assignment(s)}
	case *ast.LocalAssignStmt:
		return r.local(s)
	case *ast.FuncDefStmt:
		return []ast.Stmt{r.definition(s)}
	case *ast.FuncCallStmt:
		s.Expr = r.expression(s.Expr)
	case *ast.DoBlockStmt:
		s.Stmts = r.block(s.Stmts)
	case *ast.IfStmt:
		s.Condition = r.expression(s.Condition)
		s.Then, s.Else = r.block(s.Then), r.block(s.Else)
	case *ast.WhileStmt:
		r.function.loops++
		s.Condition = r.expression(s.Condition)
		s.Stmts = r.block(s.Stmts)
		r.function.loops--
	case *ast.RepeatStmt:
		r.function.loops++
		s.Stmts = r.block(s.Stmts)
		s.Condition = r.expression(s.Condition)
		r.function.loops--
	case *ast.NumberForStmt:
		s.Init, s.Limit = r.expression(s.Init), r.expression(s.Limit)
		if s.Step != nil {
			s.Step = r.expression(s.Step)
		}
		s.Stmts = r.loop(s.Stmts, 1)
	case *ast.GenericForStmt:
		s.Exprs = r.loopExpressions(s)
		s.Stmts = r.loop(s.Stmts, len(s.Names))
	case *ast.ReturnStmt:
		s.Exprs = r.expressions(s.Exprs)
	case *ast.LabelStmt, *ast.GotoStmt:
		r.label(s.Line())
	case *ast.BreakStmt:
	default:
		r.refuse(s.Line(), "unknown statement %T", s)
	}
	return []ast.Stmt{statement}
}

// loop rewrites the body of a loop with variables.
func (r *rewriter) loop(body []ast.Stmt, variables int) []ast.Stmt {
	f := r.function
	f.loops++
	f.locals += variables + 3
	body = r.block(body)
	f.locals -= variables + 3
	f.loops--
	return body
}

// loopExpressions rewrites the iterator, the state and the control variable of a loop. The compiler
// of gopher-lua leaves the old values of registers in those that are missing.
func (r *rewriter) loopExpressions(s *ast.GenericForStmt) []ast.Expr {
	const complete = 3
	list := r.expressions(s.Exprs)
	if isMultiple(list[len(list)-1]) && len(list) <= len(s.Names) {
		return list
	}
	for len(list) < complete {
		missing := &ast.NilExpr{}
		missing.SetLine(s.Line())
		list = append(list, missing)
	}
	return list
}

// local rewrites a declaration of local variables.
func (r *rewriter) local(s *ast.LocalAssignStmt) []ast.Stmt {
	defer func() { r.function.locals += len(s.Names) }()
	if len(s.Names) != 1 || len(s.Exprs) != 1 {
		s.Exprs = r.expressions(s.Exprs)
		return []ast.Stmt{s}
	}
	if _, isFunction := s.Exprs[0].(*ast.FunctionExpr); !isFunction {
		s.Exprs = r.expressions(s.Exprs)
		return []ast.Stmt{s}
	}
	// The compiler declares the variable before the function only if the expression is a function.
	value := r.expression(s.Exprs[0])
	if _, isFunction := value.(*ast.FunctionExpr); isFunction {
		s.Exprs[0] = value
		return []ast.Stmt{s}
	}
	declaration := &ast.LocalAssignStmt{Names: s.Names}
	declaration.SetLine(s.Line())
	return []ast.Stmt{declaration, assign(s.Line(), name(s.Line(), s.Names[0]), value)}
}

// definition rewrites function a.b.c() and function a.b:c().
func (r *rewriter) definition(s *ast.FuncDefStmt) ast.Stmt {
	target := s.Name.Func
	if target == nil {
		key := &ast.StringExpr{Value: s.Name.Method}
		key.SetLine(s.Line())
		target = &ast.AttrGetExpr{Object: s.Name.Receiver, Key: key}
		target.SetLine(s.Line())
		s.Func.ParList.Names = append([]string{"self"}, s.Func.ParList.Names...)
	}
	return r.assignment(assign(s.Line(), target, s.Func))
}

// assignment rewrites an assignment. Only names may remain on the left.
func (r *rewriter) assignment(s *ast.AssignStmt) ast.Stmt {
	if len(s.Lhs) > 1 || len(s.Rhs) > 1 {
		return r.multipleAssignment(s)
	}
	if field, isField := s.Lhs[0].(*ast.AttrGetExpr); isField {
		call := r.call(s.Line(), Set, r.expression(field.Object), r.expression(field.Key), r.expression(s.Rhs[0]))
		return callStatement(call)
	}
	r.expression(s.Lhs[0])
	s.Rhs[0] = r.expression(s.Rhs[0])
	if call, isCall := s.Rhs[0].(*ast.FuncCallExpr); isCall {
		// An assignment takes one value anyway. The compiler of gopher-lua overwrites the last
		// parameter of a function too early if the call is in parentheses.
		call.AdjustRet = false
	}
	return s
}

// multipleAssignment evaluates all expressions into local variables of a block, and then assigns
// from the last to the first, as the manual demands.
func (r *rewriter) multipleAssignment(s *ast.AssignStmt) ast.Stmt {
	line := s.Line()
	values := &ast.LocalAssignStmt{}
	values.SetLine(line)
	targets := make([]ast.Expr, len(s.Lhs))
	for i, target := range s.Lhs {
		field, isField := target.(*ast.AttrGetExpr)
		if !isField {
			targets[i] = r.expression(target)
			continue
		}
		object := r.temporary(line, values, r.expression(field.Object))
		targets[i] = &ast.AttrGetExpr{Object: object, Key: r.temporary(line, values, r.expression(field.Key))}
	}
	assignments := make([]ast.Stmt, len(s.Lhs))
	for i, target := range targets {
		value := r.temporary(line, values, nil)
		if field, isField := target.(*ast.AttrGetExpr); isField {
			assignments[len(targets)-1-i] = callStatement(r.call(line, Set, field.Object, field.Key, value))
		} else {
			assignments[len(targets)-1-i] = assign(line, target, value)
		}
	}
	values.Exprs = append(values.Exprs, r.expressions(s.Rhs)...)
	block := &ast.DoBlockStmt{Stmts: append([]ast.Stmt{values}, assignments...)}
	block.SetLine(line)
	block.SetLastLine(line)
	return block
}

// temporary declares a local variable that scripts cannot name.
func (r *rewriter) temporary(line int, values *ast.LocalAssignStmt, value ast.Expr) ast.Expr {
	r.temporaries++
	values.Names = append(values.Names, fmt.Sprintf(" %d", r.temporaries))
	if value != nil {
		values.Exprs = append(values.Exprs, value)
	}
	return name(line, values.Names[len(values.Names)-1])
}

func assign(line int, target, value ast.Expr) *ast.AssignStmt {
	s := &ast.AssignStmt{Lhs: []ast.Expr{target}, Rhs: []ast.Expr{value}}
	s.SetLine(line)
	s.SetLastLine(line)
	return s
}

func callStatement(call *ast.FuncCallExpr) ast.Stmt {
	call.AdjustRet = false
	s := &ast.FuncCallStmt{Expr: call}
	s.SetLine(call.Line())
	s.SetLastLine(call.Line())
	return s
}

func name(line int, value string) *ast.IdentExpr {
	expr := &ast.IdentExpr{Value: value}
	expr.SetLine(line)
	return expr
}
