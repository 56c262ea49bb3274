from django.http import HttpRequest, JsonResponse
from django.urls import path

from shop.models import Order


def health(_: HttpRequest) -> JsonResponse:
    return JsonResponse({"ok": True})


def orders(request: HttpRequest) -> JsonResponse:
    if request.method == "POST":
        Order.objects.create(number=request.POST["number"])
        return JsonResponse({"ordered": True}, status=201)
    return JsonResponse({"orders": Order.objects.filter(id__lt=10).count()})


urlpatterns = [path("health", health), path("orders", orders)]
