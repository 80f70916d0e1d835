package searchquery

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMatch(t *testing.T) {
	tests := map[string]struct {
		object, query string
		want          bool
	}{
		"a word matches a part of an image":                    {podYAML, `nginx`, true},
		"a word matches without case":                          {podYAML, `NGINX`, true},
		"a part of a word does not match":                      {podYAML, `ngin`, false},
		"a wildcard matches the rest of a word":                {podYAML, `ngi*`, true},
		"a wildcard matches the start of a word":               {podYAML, `*inx`, true},
		"a wildcard matches within a word":                     {podYAML, `n*x`, true},
		"a wildcard does not match across words":               {podYAML, `lib*inx`, false},
		"a lone wildcard matches every object":                 {podYAML, `*`, true},
		"a word with a separator needs both words in order":    {podYAML, `web-7d4f`, true},
		"words in the wrong order do not match":                {podYAML, `7d4f-web`, false},
		"a phrase matches words that follow each other":        {podYAML, `"value with spaces"`, true},
		"a phrase does not match words of several values":      {podYAML, `"web shop"`, false},
		"a phrase can contain an image":                        {podYAML, `"nginx:1.19"`, true},
		"a wildcard in a phrase is literal":                    {podYAML, `"ngin*"`, false},
		"a word matches a key":                                 {podYAML, `requests`, true},
		"a word matches the key of a label":                    {podYAML, `"part of"`, true},
		"a word matches an annotation":                         {podYAML, `engineer`, true},
		"a word matches a number":                              {podYAML, `4`, true},
		"a word matches a boolean":                             {deploymentYAML, `true`, true},
		"text does not match the kind":                         {podYAML, `pod`, false},
		"text does not match the resourceVersion":              {podYAML, `4711`, false},
		"text does not match managed fields":                   {podYAML, `fieldmanager`, false},
		"text does not match the last applied configuration":   {podYAML, `appliedword`, false},
		"text does not match the annotation of the cluster":    {podYAML, `"cached from cluster"`, false},
		"text does not match the cluster":                      {podYAML, `"eu west 1"`, false},
		"text matches letters that are not ASCII without case": {configYAML, `ärger`, true},
		"text matches keys that are not ASCII":                 {configYAML, `GRÖSSE OR GRÖßE`, true},

		"terms are joined by AND":                      {podYAML, `nginx envoy`, true},
		"AND can be written":                           {podYAML, `nginx AND envoy`, true},
		"every term must match":                        {podYAML, `nginx apache`, false},
		"one alternative is enough":                    {podYAML, `apache OR nginx`, true},
		"AND binds stronger than OR":                   {podYAML, `nginx OR apache missing`, true},
		"parentheses group alternatives":               {podYAML, `(nginx OR apache) missing`, false},
		"a minus negates a term":                       {podYAML, `-nginx`, false},
		"NOT negates a group":                          {podYAML, `NOT (apache OR missing)`, true},
		"two negations cancel each other":              {podYAML, `--nginx`, true},
		"lower case operators are words":               {podYAML, `nginx or envoy`, false},
		"no space is needed around parentheses":        {podYAML, `(nginx)(envoy)`, true},
		"a minus in a word does not negate":            {podYAML, `on-call`, true},
		"a word that is an operator matches in quotes": {podYAML, `"OR"`, false},

		"kind without case":                           {podYAML, `kind:pod`, true},
		"kind is exact with =":                        {podYAML, `kind=pod`, false},
		"a part of a kind does not match":             {deploymentYAML, `kind:Deploy`, false},
		"apiVersion":                                  {deploymentYAML, `apiVersion=apps/v1`, true},
		"group":                                       {deploymentYAML, `group:apps`, true},
		"the core group is empty":                     {podYAML, `group=""`, true},
		"cluster with a glob":                         {podYAML, `cluster:eu-*`, true},
		"a glob matches the whole value":              {podYAML, `cluster:west*`, false},
		"cluster by a word":                           {podYAML, `cluster:west`, true},
		"namespace by its short name":                 {podYAML, `ns:shop`, true},
		"namespace":                                   {podYAML, `namespace!=shop`, false},
		"name":                                        {podYAML, `name:web-*`, true},
		"label with a value":                          {podYAML, `label.app=web`, true},
		"label with another value":                    {podYAML, `label.app=api`, false},
		"label that exists":                           {podYAML, `label.app`, true},
		"label that does not exist":                   {podYAML, `label.tier`, false},
		"label without a value exists":                {podYAML, `label.empty`, true},
		"empty value":                                 {podYAML, `label.empty=""`, true},
		"label key with dots and a slash":             {podYAML, `label.app.kubernetes.io/part-of:shop`, true},
		"annotation":                                  {podYAML, `annotation.example.com/note:on-call`, true},
		"annotation with a phrase":                    {podYAML, `annotation.example.com/note:"the on call"`, true},
		"image with a tag":                            {podYAML, `image:nginx:1.19`, true},
		"image of another container":                  {podYAML, `image:envoy`, true},
		"image of an init container":                  {podYAML, `image=busybox:1`, true},
		"image of a template":                         {deploymentYAML, `image:api`, true},
		"image that no container has":                 {podYAML, `image:nginx:1.20`, false},
		"image with a glob":                           {podYAML, `image:docker.io/*:1.19`, true},
		"phase":                                       {podYAML, `phase=Running`, true},
		"phase that differs":                          {podYAML, `phase!=Running`, false},
		"a missing field differs":                     {deploymentYAML, `phase!=Running`, true},
		"node":                                        {podYAML, `node=node-3`, true},
		"ready by the condition":                      {podYAML, `ready=false`, true},
		"ready by the replicas":                       {deploymentYAML, `ready=true`, true},
		"ready of an object without readiness":        {configYAML, `ready=false`, false},
		"status by the reason of a container":         {podYAML, `status:crashloopbackoff`, true},
		"status by a condition":                       {podYAML, `status=PodScheduled`, true},
		"status by a false condition":                 {podYAML, `status=NotReady`, true},
		"status of a deleted object":                  {deploymentYAML, `status:terminating`, true},
		"owner with its kind":                         {podYAML, `owner=ReplicaSet/web-7d4f`, true},
		"owner by its name":                           {podYAML, `owner=web-7d4f`, true},
		"owner of another kind":                       {podYAML, `owner:Job/web-7d4f`, false},
		"age over a limit":                            {podYAML, `age>1h`, true},
		"age under a limit":                           {podYAML, `age<1h59m`, false},
		"age equal to a limit":                        {podYAML, `age>=2h age<=2h`, true},
		"age in days":                                 {deploymentYAML, `age>7w age<1y`, true},
		"an object without creation time has no age":  {configYAML, `age>0s`, false},
		"restarts of all containers":                  {podYAML, `restarts>4 restarts<=5`, true},
		"restarts as a value":                         {podYAML, `restarts=5`, true},
		"an object without containers has no restart": {configYAML, `restarts<1`, false},

		"path to a number":                      {deploymentYAML, `spec.replicas=3`, true},
		"path compared with a number":           {deploymentYAML, `spec.replicas>=4`, false},
		"path through arrays":                   {podYAML, `spec.containers.image:envoy`, true},
		"path to a quantity":                    {podYAML, `spec.containers.resources.requests.memory>1Gi`, true},
		"path to a small quantity":              {podYAML, `spec.containers.resources.requests.cpu<0.3`, true},
		"path to a key with a dot":              {configYAML, `data.nginx.conf:listen`, true},
		"path to an object has no value":        {podYAML, `spec.containers:*`, false},
		"path with a leading dot":               {secretYAML, `.type=Opaque`, true},
		"a value that is no number is not less": {podYAML, `spec.nodeName<5`, false},

		"values of a Secret are no text":               {secretYAML, `c2VjcmV0`, false},
		"string data of a Secret is no text":           {secretYAML, `plaintoken`, false},
		"values of a Secret have no path":              {secretYAML, `data.password:*`, false},
		"values of a Secret are not equal":             {secretYAML, `data.password=c2VjcmV0`, false},
		"the last applied Secret is not an annotation": {secretYAML, `annotation.kubectl.kubernetes.io/last-applied-configuration:*`, false},
		"the last applied Secret has no path":          {secretYAML, `metadata.annotations.kubectl.kubernetes.io/last-applied-configuration:*`, false},
		"other annotations of a Secret match":          {secretYAML, `annotation.example.com/note=rotated`, true},
		"keys of a Secret match":                       {secretYAML, `password "tls.crt"`, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, q := document(t, test.object), mustParse(t, test.query)
			if _, got := q.Match(d); got != test.want {
				t.Errorf("%s matches: %t, want %t", test.query, got, test.want)
			}
			if test.want {
				checkNecessaryConditions(t, q, d)
			}
		})
	}
}

func TestMatchReasons(t *testing.T) {
	long := strings.Repeat("x ", 500) + "needle" + strings.Repeat(" y", 500)
	tests := map[string]struct {
		object, query string
		want          []Matched
	}{
		"text is found at a path":             {podYAML, `nginx`, []Matched{{"spec.containers[0].image", "docker.io/library/nginx:1.19"}}},
		"a key is found at its path":          {podYAML, `requests`, []Matched{{"spec.containers[0].resources.requests", "requests"}}},
		"a field has its value":               {podYAML, `image:envoy`, []Matched{{"image", "quay.io/envoy/envoy:v2"}}},
		"the short name is replaced":          {podYAML, `ns:shop`, []Matched{{"namespace", "shop"}}},
		"an excluded value is shown":          {podYAML, `phase!=Failed`, []Matched{{"phase", "Running"}}},
		"a negated field is shown":            {podYAML, `-phase:Failed`, []Matched{{"phase", "Running"}}},
		"only alternatives that hold":         {podYAML, `phase=Failed OR node=node-3`, []Matched{{"node", "node-3"}}},
		"a reason is given once":              {podYAML, `node=node-3 node=node-3`, []Matched{{"node", "node-3"}}},
		"age is rounded to seconds":           {podYAML, `age>1h`, []Matched{{"age", "2h0m0s"}}},
		"a label that exists":                 {podYAML, `label.app`, []Matched{{"label.app", "web"}}},
		"a negated text has no reason":        {podYAML, `-apache`, nil},
		"a long value is cut around the word": {`{"kind":"A","data":{"k":"` + long + `"}}`, `needle`, []Matched{{"data.k", "…" + strings.Repeat("x ", 15) + "needle" + strings.Repeat(" y", 41) + "…"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, matches := mustParse(t, test.query).Match(document(t, test.object))
			if !matches {
				t.Fatalf("%s does not match", test.query)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMatchDoesNotChangeTheObject(t *testing.T) {
	d := document(t, secretYAML)
	mustParse(t, `password OR data.password:x OR note`).Match(d)
	if diff := cmp.Diff(decode(t, secretYAML), d.Object); diff != "" {
		t.Error(diff)
	}
}

func TestObjectsOfUnusualFormDoNotPanic(t *testing.T) {
	objects := map[string]string{
		"no metadata":             `{"kind":"A"}`,
		"metadata is an array":    `{"metadata":[1]}`,
		"labels are a text":       `{"metadata":{"labels":"x","annotations":3,"ownerReferences":{"a":1}}}`,
		"status is a number":      `{"status":5,"spec":"x"}`,
		"conditions are no array": `{"status":{"conditions":{"a":1},"containerStatuses":["x"]},"spec":{"containers":[4]}}`,
		"a label is no text":      `{"metadata":{"labels":{"app":{"a":1}}}}`,
		"a secret without values": `{"apiVersion":"v1","kind":"Secret","metadata":3,"data":"x"}`,
	}
	for name, object := range objects {
		t.Run(name, func(t *testing.T) {
			d := document(t, object)
			for _, f := range append(namedFields(), "label.app", "annotation.a", "spec.containers.image") {
				if f != ageField {
					mustParse(t, string(f)+`=x OR `+string(f)+`:*`).Match(d)
				}
			}
		})
	}
}

// checkNecessaryConditions checks that no condition excludes the object if it matches.
func checkNecessaryConditions(t testing.TB, q *Query, d *Document) {
	t.Helper()
	known := Known{Cluster: d.Cluster, APIVersion: stringAt(d.Object, "apiVersion"), Kind: stringAt(d.Object, "kind")}
	if !q.CanMatch(known) {
		t.Errorf("%s matches, but not by its kind and cluster", q)
	}
	known.HasName, known.Namespace, known.Name = true, stringAt(d.Object, "metadata", "namespace"), stringAt(d.Object, "metadata", "name")
	created, _ := time.Parse(time.RFC3339, stringAt(d.Object, "metadata", "creationTimestamp"))
	known.HasAge, known.Created, known.Now = true, created, d.Now
	known.Label = func(key string) (string, bool) {
		labels, _ := at(d.Object, "metadata", "labels").(map[string]any)
		value, found := labels[key].(string)
		return value, found
	}
	if !q.CanMatch(known) {
		t.Errorf("%s matches, but not by its name and labels", q)
	}
	words := map[string]bool{}
	Words(d.Object, func(word string) bool { words[word] = true; return true })
	facts := map[string][]string{}
	Facts(d.Object, func(field, value string) { facts[field] = append(facts[field], value) })
	if !fulfils(q.Condition(), words, facts) {
		t.Errorf("%s matches, but its condition %+v does not hold", q, q.Condition())
	}
}

func fulfils(c Condition, words map[string]bool, facts map[string][]string) bool {
	for _, part := range c.All {
		if !fulfils(part, words, facts) {
			return false
		}
	}
	if len(c.Any) > 0 {
		for _, part := range c.Any {
			if fulfils(part, words, facts) {
				return true
			}
		}
		return false
	}
	if c.Fact != nil {
		return slices.ContainsFunc(facts[c.Fact.Field], c.Fact.Holds) != c.Fact.Negated
	}
	if c.IsPattern {
		for word := range words {
			if matchGlob(c.Word, word) {
				return true
			}
		}
		return false
	}
	return c.Word == "" || words[c.Word]
}
