package guard

import (
	"fmt"
	"strings"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

const (
	// maxNesting is the maximum nesting of blocks, functions, brackets and braces.
	maxNesting = 200
	// maxOperators is the maximum number of operators without brackets in between that the parser
	// must remember before it can apply the first of them.
	maxOperators = 1000
	// maxTokens limits the memory of the syntax tree, which needs about 100 bytes for each token.
	maxTokens = 250_000
)

// scan reads the tokens of a text and limits its nesting, because the stack of the parser has no
// limit of its own. It reports whether the text has labels.
func scan(text string) (hasLabels bool, err error) {
	scanner, lexer := parse.NewScanner(strings.NewReader(text), ""), &parse.Lexer{}
	var nesting nesting
	for count := 0; ; count++ {
		token, err := scanner.Scan(lexer)
		switch {
		case err != nil:
			return false, syntaxError(err)
		case token.Type == parse.EOF:
			return hasLabels, nil
		case count == maxTokens:
			return false, fmt.Errorf("line %d: the script is too long: it has more than %d words and symbols", token.Pos.Line, maxTokens)
		}
		hasLabels = hasLabels || token.Type == parse.T2Colon
		lexer.PrevTokenType, lexer.Token = token.Type, token
		if err := nesting.add(token); err != nil {
			return false, err
		}
	}
}

// nesting is what the parser must remember at one token of the text.
type nesting struct {
	// outer has, for each open block, bracket and brace, the number of pending operators before it.
	outer []int
	// pending is the number of operators since the last open or separating token.
	pending int
	// total is the number of pending operators with those in outer.
	total int
}

func (n *nesting) add(token ast.Token) error {
	switch token.Type {
	case '(', '[', '{', parse.TFunction, parse.TDo, parse.TThen, parse.TRepeat:
		if len(n.outer) == maxNesting {
			return fmt.Errorf("line %d: the script is nested deeper than %d levels", token.Pos.Line, maxNesting)
		}
		n.outer, n.pending = append(n.outer, n.pending), 0
	case ')', ']', '}', parse.TEnd, parse.TUntil, parse.TElseIf:
		n.total -= n.pending
		n.pending = 0
		if len(n.outer) > 0 {
			n.pending, n.outer = n.outer[len(n.outer)-1], n.outer[:len(n.outer)-1]
		}
	case ',', ';', '=', parse.TElse, parse.TLocal, parse.TReturn, parse.TIf, parse.TWhile, parse.TFor, parse.TIn:
		n.total -= n.pending
		n.pending = 0
	case '-', '#', '^', parse.TNot, parse.T2Comma:
		n.pending++
		n.total++
		if n.total > maxOperators {
			return fmt.Errorf("line %d: the expression has more than %d operators: split it", token.Pos.Line, maxOperators)
		}
	}
	return nil
}
