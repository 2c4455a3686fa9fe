/* SPDX-License-Identifier: MIT */
/*
 * What clients are shown (a view for each profile), and who of them hears what: changes
 * of lists, and log messages.
 *
 * Owns: the views' numbers, the list of observers, what each view was last told.
 * Driven by: clients that come and go, lists that change, upstreams that log.
 * Invariants: a list that was given to a client of a view, or announced to it, is the
 * baseline that list_changed compares with there; a name keeps its number as long as it
 * or anybody who looks at it is there.
 */
#include "gateway_priv.h"
#include "gateway_questions_priv.h"
#include "gateway_tasks_priv.h"

#include "mcpvisor/log.h"
#include "mcpvisor/mem.h"
#include "mcpvisor/metrics.h"

#include <string.h>

#define BURST_MS     50
#define DEFAULT_NAME "default"

static char *no_upstreams[] = {NULL};
/* In place of a profile that is gone. */
static const struct profile_conf shows_nothing = {.upstreams = no_upstreams};

/* ---- views ---- */

static bool
view_find(const struct gateway *g, const char *name, unsigned *view)
{
	for (unsigned i = 0; i < g->n_views; i++) {
		if (strcmp(g->views[i]->name, name) != 0)
			continue;
		*view = i;
		return true;
	}
	return false;
}

static void
view_rename(struct view *v, const char *name)
{
	mem_free(v->name);
	v->name = mem_xstrdup(name);
}

/* The number of a profile that is gone and that nobody looks at goes to another one. */
static bool
view_reuse(struct gateway *g, const char *name, unsigned *view)
{
	for (unsigned i = 0; i < g->n_views; i++) {
		if (g->profiles[i] != &shows_nothing || g->views[i]->n_observers > 0 ||
		    g->views[i]->is_reserved || i == g->first_view)
			continue;
		view_rename(g->views[i], name);
		memset(g->views[i]->announced, 0, sizeof(g->views[i]->announced));
		memset(g->views[i]->differs, 0, sizeof(g->views[i]->differs));
		*view = i;
		return true;
	}
	return false;
}

static bool
view_add(struct gateway *g, const char *name, unsigned *view)
{
	if (g->n_views == CATALOG_VIEWS_MAX) {
		if (view_reuse(g, name, view))
			return true;
		LOG_ERROR("gateway", "too many profiles", "profile=%s",
		    LOG_ESC(name, strlen(name)));
		return false;
	}
	*view = (unsigned)g->n_views++;
	g->views[*view] = mem_xcalloc(1, sizeof(struct view));
	g->views[*view]->name = mem_xstrdup(name);
	g->profiles[*view] = &shows_nothing;
	return true;
}

bool
gateway_reserve_view(struct gateway *g, const char *profile, unsigned *view)
{
	*view = g->first_view;
	if (profile == NULL)
		return true;
	if (!view_find(g, profile, view) && !view_add(g, profile, view))
		return false;
	g->views[*view]->is_reserved = true;
	return true;
}

void
gateway_unreserve_views(struct gateway *g)
{
	for (size_t i = 0; i < g->n_views; i++)
		g->views[i]->is_reserved = false;
}

static const char *
profile_name(const struct profile_conf *p)
{
	return p != NULL ? p->name : DEFAULT_NAME;
}

void
gateway_views_set(struct gateway *g, const struct gateway_opts *o)
{
	const struct profile_conf *const everything[] = {NULL};
	const struct profile_conf *const *list =
	    o->n_profiles > 0 ? o->profiles : everything;
	size_t n = o->n_profiles > 0 ? o->n_profiles : 1;
	unsigned view, implicit = g->first_view;
	/* Whoever named no profile while there was none is shown the first there is. */
	bool claim = g->n_views > 0 && g->profiles[implicit] == NULL &&
		     !view_find(g, profile_name(list[0]), &view);

	for (size_t i = 0; i < n && claim; i++)
		claim = strcmp(profile_name(list[i]), g->views[implicit]->name) != 0;
	if (claim)
		view_rename(g->views[implicit], profile_name(list[0]));
	for (size_t i = 0; i < g->n_views; i++)
		g->profiles[i] = &shows_nothing;
	for (size_t i = 0; i < n; i++)
		if (view_find(g, profile_name(list[i]), &view))
			g->profiles[view] = list[i];
	/* What is left of the numbers is for the new ones. */
	for (size_t i = 0; i < n; i++) {
		const char *name = profile_name(list[i]);

		if (!view_find(g, name, &view) && !view_add(g, name, &view))
			continue;
		g->profiles[view] = list[i];
		if (i == 0)
			g->first_view = view;
	}
	gateway_unreserve_views(g);
}

bool
gateway_view(const struct gateway *g, const char *profile, unsigned *view)
{
	*view = g->first_view;
	if (profile == NULL)
		return true;
	return view_find(g, profile, view) && g->profiles[*view] != &shows_nothing;
}

/* ---- changes ---- */

void
gateway_baseline(struct gateway *g, unsigned view, enum list_kind kind)
{
	struct view *v = g->views[view];

	/* What others were given before stays what changes are measured by: they still
	 * have to hear of this one. */
	if (v->announced[kind])
		return;
	v->announced[kind] = true;
	v->announced_hash[kind] = catalog_hash(g->catalog, view, kind);
}

void
gateway_note_given(struct gateway *g, unsigned view, enum list_kind kind)
{
	struct view *v = g->views[view];

	gateway_baseline(g, view, kind);
	v->differs[kind] |=
	    v->announced_hash[kind] != catalog_hash(g->catalog, view, kind);
}

/* Bit 1 << kind of each list of a view that is not what it was; now it is. */
static unsigned
view_update(struct gateway *g, unsigned view)
{
	struct view *v = g->views[view];
	unsigned changed = 0;

	for (unsigned k = 0; k < LIST_MAX; k++) {
		uint64_t hash;

		if ((g->burst_mask & 1u << k) == 0 || !v->announced[k])
			continue;
		hash = catalog_hash(g->catalog, view, (enum list_kind)k);
		if (v->announced_hash[k] != hash || v->differs[k])
			changed |= 1u << k;
		v->announced_hash[k] = hash;
		v->differs[k] = false;
	}
	return changed;
}

static void
on_burst_timer(void *arg)
{
	struct gateway *g = arg;
	unsigned changed[CATALOG_VIEWS_MAX] = {0};

	/* Where nobody listens the old baseline stays, and whoever comes hears of it. */
	for (unsigned i = 0; i < g->n_views; i++)
		if (g->views[i]->n_observers > 0)
			changed[i] = view_update(g, i);
	if (g->burst_mask & (1u << LIST_RESOURCES | 1u << LIST_TEMPLATES))
		subscriptions_follow(g);
	g->burst_mask = 0;
	for (struct gateway_observer *o = g->observers; o != NULL; o = g->observer_next) {
		g->observer_next = o->next;
		if (changed[o->view] != 0)
			o->on_changed(o->arg, changed[o->view]);
	}
}

void
gateway_changed(struct gateway *g, enum list_kind kind)
{
	bool wanted = strmap_count(g->subscriptions) > 0;

	catalog_mark(g->catalog, kind);
	gateway_retry(g);
	/* Nobody can have an old copy of what was never given out. */
	for (size_t i = 0; i < g->n_views; i++)
		wanted |= g->views[i]->announced[kind];
	if (!wanted)
		return;
	if (g->burst_mask == 0)
		timer_set(&g->burst_timer, BURST_MS);
	g->burst_mask |= 1u << kind;
}

void
gateway_note_listener(struct gateway *g)
{
	/* While upstreams start, lists grow: that is no change of what somebody had. */
	if (!g->wait_over)
		return;
	for (unsigned i = 0; i < g->n_views; i++)
		for (unsigned k = 0; k < LIST_MAX && g->views[i]->n_observers > 0; k++)
			gateway_baseline(g, i, (enum list_kind)k);
}

void
gateway_views_init(struct gateway *g, const struct gateway_opts *o)
{
	timer_init(&g->burst_timer, g->loop, on_burst_timer, g);
	gateway_views_set(g, o);
}

void
gateway_views_fini(struct gateway *g)
{
	timer_fini(&g->burst_timer);
	for (size_t i = 0; i < g->n_views; i++) {
		mem_free(g->views[i]->name);
		mem_free(g->views[i]);
	}
}

/* ---- observers ---- */

void
gateway_observe(struct gateway *g, struct gateway_observer *o)
{
	MCPVISOR_ASSERT(o->view < g->n_views);
	o->level = MCP_LV_MAX;
	o->serial = ++g->last_serial;
	o->next = g->observers;
	if (o->next != NULL)
		o->next->prev = &o->next;
	o->prev = &g->observers;
	g->observers = o;
	g->views[o->view]->n_observers++;
}

enum mcp_level
gateway_level(const struct gateway *g)
{
	enum mcp_level most = MCP_LV_MAX;

	for (const struct gateway_observer *o = g->observers; o != NULL; o = o->next)
		if (o->level < most)
			most = o->level;
	return most;
}

/* Those that serve all hear what is the most verbose now. */
static void
gateway_tell_level(struct gateway *g)
{
	enum mcp_level most = gateway_level(g);

	for (size_t i = 0; i < g->n; i++)
		upstream_set_level(g->v[i], most);
	for (struct member *m = g->instances; m != NULL; m = m->next)
		if (m->owner == NULL)
			upstream_set_level(m->u, most);
}

void
gateway_set_level(struct gateway *g, struct gateway_observer *o, enum mcp_level level)
{
	o->level = level;
	gateway_tell_level(g);
	for (struct member *m = g->instances; m != NULL; m = m->next)
		if (m->owner == o)
			upstream_set_level(m->u, level);
}

void
gateway_unobserve(struct gateway *g, struct gateway_observer *o)
{
	char principal[PRINCIPAL_BYTES];

	*o->prev = o->next;
	if (o->next != NULL)
		o->next->prev = o->prev;
	if (g->observer_next == o)
		g->observer_next = o->next;
	g->views[o->view]->n_observers--;
	gateway_questions_leave(g, o);
	tasks_leave(g, o);
	gateway_release_instances(g, o);
	if (o->n_instances > 0) {
		observer_put_principal(o, principal);
		identity_gate_forget(g->answers.identities, principal, NULL);
	}
	/* Nobody may want as much as it did. */
	if (o->level != MCP_LV_MAX && o->level < gateway_level(g))
		gateway_tell_level(g);
}

/* ---- log messages ---- */

struct owner_search {
	struct upstream_req *req;
	size_t n;
	bool several;
};

static bool
owner_of_req(struct upstream_req *r, void *arg)
{
	struct owner_search *s = arg;

	if (s->n++ > 0 && s->req->owner != r->owner)
		s->several = true;
	s->req = r;
	return !s->several;
}

/* The one client that can have caused anything at m; NULL: there are others, or none. */
static struct gateway_observer *
log_sole_owner(const struct member *m)
{
	struct gateway_observer *sole = NULL;

	if (m->is_instance && m->owner != NULL)
		return m->owner;
	if (m->is_instance || m->state != MEMBER_ST_ACTIVE)
		return NULL;
	for (struct gateway_observer *o = m->g->observers; o != NULL; o = o->next) {
		if (!catalog_shows_upstream(m->g->catalog, o->view, m->u))
			continue;
		if (sole != NULL)
			return NULL;
		sole = o;
	}
	return sole;
}

/* r is all that is in flight at m: it is the cause, if no call that was given up is. */
static bool
log_is_of(const struct member *m, const struct upstream_req *r)
{
	const struct gateway_observer *o;

	if (!member_may_be_late(m, r->owner))
		return true;
	o = log_sole_owner(m);
	return o != NULL && o == r->owner && !o->is_crowd;
}

void
gateway_deliver_log(struct member *m, const struct link_msg *msg)
{
	struct owner_search s = {.n = 0};
	struct gateway_observer *o;

	upstream_each_req(m->u, owner_of_req, &s);
	if (s.n == 1 && s.req->cb->on_log != NULL && log_is_of(m, s.req)) {
		s.req->cb->on_log(s.req->arg, msg);
		return;
	}
	o = log_sole_owner(m);
	if (o == NULL && s.n > 0 && !s.several && !member_may_be_late(m, s.req->owner))
		for (o = m->g->observers; o != NULL && o != s.req->owner;)
			o = o->next;
	if (o != NULL)
		o->on_log(o->arg, m->u, msg);
	else
		metrics_add(METRIC_NOTICES_DROPPED, 1);
}
