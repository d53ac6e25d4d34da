from django.apps import AppConfig


class ViewsConfig(AppConfig):
    name = "views_mgmt"
    native_urls = "views_mgmt.urls"

    def ready(self) -> None:
        from access.explain import audit_log
        from authz.services import owners
        from catalogs import stores
        from catalogs.services import cascade
        from metalake import outbox
        from metalake.kinds import Kind
        from providers.base import Storage
        from views_mgmt import versions
        from views_mgmt.delegated import orphans
        from views_mgmt.delegated.views import DelegatedViews
        from views_mgmt.managed.views import ManagedViews
        from views_mgmt.services import definer, dependencies, findings

        stores.register(Storage.ROWS, Kind.VIEW, ManagedViews())
        stores.register(Storage.MANAGED, Kind.VIEW, DelegatedViews())
        cascade.before_removal(Kind.VIEW, versions.forget)
        audit_log.leave_to_metalake(findings.DRIFTED, findings.MENDED)
        outbox.every_round(dependencies.read_new_versions)
        owners.check_before_handing_with(definer.require_not_definer)
        owners.tell_when_handed_over(definer.become_invokers)
        owners.tell_when_handed_over(orphans.note)
        outbox.handles(definer.BECOMES_INVOKER, orphans.become_invoker)
