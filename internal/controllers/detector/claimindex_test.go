package detector

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karmada.io/karmada/internal/domain/policy"
)

func sortedNames(all []templateRef) []string {
	var texts []string
	for _, r := range all {
		texts = append(texts, r.String())
	}
	slices.Sort(texts)
	return texts
}

func TestClaimIndexFollowsTemplates(t *testing.T) {
	claimedBy := func(id string) metav1.Object {
		object := newObject(deployments)
		policy.Claim{Namespace: "shop", Name: "p", ID: id}.Apply(object)
		return object
	}
	c := newClaimIndex()
	web, db := newRef(deployments, "shop", "web"), newRef(deployments, "shop", "db")
	c.update(web, claimedBy("one"))
	c.update(db, claimedBy("one"))
	c.update(db, claimedBy("two"))
	if diff := cmp.Diff([]string{"Deployment shop/web"}, sortedNames(c.templatesOf("one"))); diff != "" {
		t.Errorf("after another policy claimed a template (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Deployment shop/db"}, sortedNames(c.templatesOf("two"))); diff != "" {
		t.Errorf("the other policy (-want +got):\n%s", diff)
	}
	c.update(web, newObject(deployments))
	c.delete(db)
	if len(c.byID) != 0 || len(c.byTemplate) != 0 {
		t.Errorf("still holding %v and %v of released and deleted templates", c.byID, c.byTemplate)
	}
	c.update(web, claimedBy("one"))
	c.deleteKind(deployments)
	if got := c.templatesOf("one"); len(got) != 0 {
		t.Errorf("still holding %v of a removed kind", got)
	}
}
