package searchquery

import (
	"errors"
	"strings"
	"testing"
)

func TestParseErrors(t *testing.T) {
	tests := map[string]struct{ query, want string }{
		"empty":                        {"  ", `query, column 1: the query is empty, expected a term: for example: kind:Pod, or * for all objects`},
		"misspelled field":             {"kind:Pod imge:nginx", `query, column 10: unknown field "imge": did you mean image? To search for text, put it in quotes`},
		"misspelled root of a path":    {"spce.replicas>3", `query, column 1: unknown field "spce.replicas": did you mean spec.replicas? A path that begins with another field needs a leading dot`},
		"text with a colon":            {"nginx:1.19", `query, column 1: unknown field "nginx": to search for text, put it in quotes; fields are ns, kind, apiVersion, group, cluster, namespace, name, image, phase, node, ready, status, owner, age, restarts, label.KEY, annotation.KEY and paths such as spec.replicas`},
		"no field":                     {"=x", `query, column 1: expected a field before "=": for example: kind=Pod; put text with this character in quotes`},
		"no value":                     {"kind:", `query, column 6: expected a value after "kind:": for an empty value, write ""`},
		"no label key":                 {"label.=x", `query, column 1: expected a key after "label.": for example: label.app`},
		"empty part of a path":         {"spec..x=1", `query, column 1: "spec..x" has an empty part, expected names of fields between dots: for example: spec.replicas`},
		"a value that is no number":    {"restarts>many", `query, column 10: "many" is no number or quantity, which ">" needs: for example: restarts>3, or spec.resources.requests.memory>=2Gi`},
		"a number that is too large":   {"restarts>1e999999999", `query, column 10: "1e999999999" is no number or quantity, which ">" needs: for example: restarts>3, or spec.resources.requests.memory>=2Gi`},
		"a value that is no time":      {"age>5x", `query, column 5: "5x" is no time, which age needs: for example: 30s, 10m, 1h30m, 7d, 2w or 1y`},
		"a time that is too long":      {"age>999999999999y", `query, column 5: "999999999999y" is no time, which age needs: for example: 30s, 10m, 1h30m, 7d, 2w or 1y`},
		"age without comparison":       {"age:1h", `query, column 1: expected <, <=, > or >= after age, got ":": for example: age>1h`},
		"missing closing quote":        {`a "b c`, `query, column 3: no closing quote: add a quote (") at the end of the phrase`},
		"text after a quote":           {`"a"b`, `query, column 4: expected a space after the closing quote: put a space after the quote, or the whole value in quotes`},
		"quote in a word":              {`a"b"`, `query, column 2: quote inside a word: put the whole value in quotes`},
		"missing closing parenthesis":  {`a (b OR c`, `query, column 3: no closing parenthesis: add ")" after the last term of the group`},
		"closing parenthesis too much": {`a) b`, `query, column 2: expected a term or the end, got ")": remove it, or add the opening parenthesis`},
		"nothing in parentheses":       {`a ()`, `query, column 4: expected a term, got ")": write AND, OR and NOT in quotes to search for these words`},
		"nothing after OR":             {`a OR`, `query, column 5: expected a term, got the end: write AND, OR and NOT in quotes to search for these words`},
		"two operators":                {`a OR AND b`, `query, column 6: expected a term, got AND: write AND, OR and NOT in quotes to search for these words`},
		"nothing after NOT":            {`NOT`, `query, column 4: expected a term, got the end: write AND, OR and NOT in quotes to search for these words`},
		"text without a word":          {`a -`, `query, column 3: "-" has no letter and no digit: search for a word, or use field=value for an exact value`},
		"columns count characters":     {`äöü imge:x`, `query, column 5: unknown field "imge": did you mean image? To search for text, put it in quotes`},
		"invalid UTF-8":                {"ab\xffc", `query, column 3: a character is not valid UTF-8: encode the query as UTF-8`},
		"too long":                     {strings.Repeat("a", 4097), `query, column 1: the query has 4097 bytes, at most 4096 are allowed: use fewer or shorter terms`},
		"too many terms":               {strings.Repeat("a ", 65), `query, column 129: the query has more than 64 terms: use several queries`},
		"too many parentheses":         {strings.Repeat("(", 17) + "a", `query, column 17: parentheses and negations are nested deeper than 16: remove parentheses or negations`},
		"too many negations":           {strings.Repeat("-", 17) + "a", `query, column 17: parentheses and negations are nested deeper than 16: remove parentheses or negations`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(test.query)
			var syntax *SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("Parse(%q) returns %v, want a syntax error", test.query, err)
			}
			if err.Error() != test.want {
				t.Errorf("Parse(%q):\n got %s\nwant %s", test.query, err, test.want)
			}
		})
	}
}

func TestString(t *testing.T) {
	tests := map[string]struct{ query, want string }{
		"operators are reduced":         {`a AND NOT b`, `a -b`},
		"parentheses are kept":          {`(a OR b) c`, `(a OR b) c`},
		"needless parentheses are left": {`((a) (b c)) OR (d OR (e))`, `a b c OR d OR e`},
		"names of fields are canonical": {`NS:x Kind=Pod apiversion!=v1`, `namespace:x kind=Pod apiVersion!=v1`},
		"quotes are kept":               {`"a \"b\" \\ c" label.x:"d e"`, `"a \"b\" \\ c" label.x:"d e"`},
		"existence":                     {`-label.app annotation.a/b`, `-label.app annotation.a/b`},
		"a group is negated":            {`NOT (a OR NOT b)`, `-(a OR -b)`},
		"comparisons":                   {`age>=1h restarts<3`, `age>=1h restarts<3`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := mustParse(t, test.query).String(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
